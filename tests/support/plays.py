"""Workflows played to their end: written down, driven, answered, and their log read."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.support.folders import write_folder
from tests.support.programs import Program, make_world
from tests.support.world import PATIENCE, World
from turnloom import Engine, Event, Loom, Run

# What a person who is asked says, given the question.
Person = Callable[[Any], Any]


def solo(code: str, *tools: str | Mapping[str, Any], **parts: Any) -> dict[str, str]:
    """A folder with one agent, `A`, that has tools of one file; other parts as they are given.

    A tool is its function, or everything that is declared of it.
    """
    declared = [{"function": tool} if isinstance(tool, str) else tool for tool in tools]
    files = {
        "agents": {"A": {"system_message": "You are A."}},
        "tools": {"tools": [{"agent": "A", "file": "code.py", **tool} for tool in declared]},
        **parts,
    }
    written = {f"{part}.json": json.dumps(said) for part, said in files.items()}
    return written | ({"code.py": code} if code else {})


def call(tool: str, **arguments: Any) -> dict[str, Any]:
    """A tool that a line of a script calls."""
    return {"tool": tool, "arguments": arguments}


def lines(*said: Any) -> dict[str, Any]:
    """A script for agent `A`: texts, calls (one or a list of them), or whole lines."""
    return {"agents": {"A": [_line(each) for each in said]}}


def _line(said: Any) -> Any:
    if isinstance(said, list):
        return {"calls": said}
    return {"calls": [said]} if isinstance(said, dict) and "tool" in said else said


def answering(*answers: Any) -> Person:
    """A person who gives these answers, one after the other."""
    left = iter(answers)
    return lambda question: next(left)


def _silent(question: Any) -> Any:
    raise AssertionError(f"Nobody was to be asked: {question}")


async def attend(program: Program, run: str, person: Person) -> list[Event]:
    """Drive a run to its end, a person answering each question."""
    await program.drive(run)
    while True:
        events = list(await program.app.history.events(run))
        if events[-1].kind != "run.paused":
            return events
        oldest = await program.app.handle(run).question()
        assert oldest is not None
        asked = next(each for each in every(events, "question.asked") if each.question == oldest.id)
        await program.answer(run, person(asked), asked.question)


async def play(
    where: Path, files: Mapping[str, str], person: Person = _silent, engine: Engine | None = None
) -> list[Event]:
    """The log of a run of these files, from its beginning to its end."""
    async with Program(make_world(engine)) as program:
        return await attend(program, await program.start(write_folder(where, files)), person)


def every(events: Iterable[Event], kind: str) -> list[Any]:
    """The facts of a kind."""
    return [event.data for event in events if event.kind == kind]


def last(events: Sequence[Event], kind: str) -> Any:
    """The last fact of a kind."""
    return every(events, kind)[-1]


def only(events: Iterable[Event], kind: str) -> Any:
    """The one fact of a kind."""
    (fact,) = every(events, kind)
    return fact


@asynccontextmanager
async def serving(world: World) -> AsyncIterator[Loom]:
    """An app that drives its runs by itself."""
    async with asyncio.timeout(PATIENCE), world.app() as app:
        yield app


async def until(run: Run, kind: str, after: int = 0) -> Event:
    """The next event of a kind."""
    async for event in run.events(after):
        if event.kind == kind:
            return event
    raise AssertionError(f"{kind} never came")
