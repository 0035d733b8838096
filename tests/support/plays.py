"""Workflows played to their end: written down, driven, answered, and their log read."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.support.folders import write_folder
from tests.support.worlds import begin, make_driver, make_world
from turnloom.agents.spec import Engine
from turnloom.log.spec import Event
from turnloom.runtime.service.runs import Runs, World
from turnloom.runtime.spec import Reply

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


async def attend(world: World, run: str, person: Person) -> list[Event]:
    """Drive a run to its end, a person answering each question."""
    driver = make_driver(world)
    while True:
        await driver.drive(run)
        events = list(await world.stores.log.read(run))
        if events[-1].kind != "run.paused":
            return events
        asked = last(events, "question.asked")
        id = asked.question
        await world.stores.inbox.offer(run, f"{id}/answer", Reply(id, person(asked), "u1"))


async def play(
    where: Path, files: Mapping[str, str], person: Person = _silent, engine: Engine | None = None
) -> list[Event]:
    """The log of a run of these files, from its beginning to its end."""
    world = make_world(engine)
    run = await begin(world, write_folder(where, files))
    return await attend(world, run, person)


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
async def serving(world: World) -> AsyncIterator[Runs]:
    """Runs that are driven as they are in an app."""
    runs = Runs(world)
    task = asyncio.create_task(runs.serve(10))
    try:
        yield runs
    finally:
        task.cancel()
        await asyncio.wait({task})


async def until(runs: Runs, run: str, kind: str, after: int = 0) -> Event:
    """The next event of a kind."""
    async for event in runs.events(run, after):
        if event.kind == kind:
            return event
    raise AssertionError(f"{kind} never came")
