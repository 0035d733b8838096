"""Several turns are open at once: a stream that comes back has the text of each, once."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path as Folder
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict

from tests.support.served import PATIENCE, Frame, Note, Site, site
from turnloom import AgentStep, Answer, Flow, Path, Task

PEOPLE = ("Ann", "Bob", "Cy")


class Round(BaseModel):
    """What three agents say."""

    model_config = ConfigDict(frozen=True)
    said: str = ""


class Speak(AgentStep[Round]):
    """An agent that says something."""

    def instructions(self) -> str:
        return "Speak."

    def user_prompt(self, state: Round) -> str:
        return "Well?"

    def apply(self, state: Round, answer: Any, context: Any) -> dict[str, Any]:
        return {}


class Choir:
    """Each agent says some words, in two tries, and the rest when it is told to."""

    def __init__(self) -> None:
        self.go = {name: asyncio.Event() for name in PEOPLE}
        self.said = {name: asyncio.Event() for name in PEOPLE}

    async def __call__(self, task: Task) -> Answer:
        for piece in ("nothing", None, f"{task.agent} ", "says "):
            task.say(piece)
        self.said[task.agent].set()
        await self.go[task.agent].wait()
        task.say("this.")
        return Answer(f"{task.agent} says this.")


async def on_a_board(at: Site) -> str:
    board = at.app.board("choir")
    board.register(Note)
    for name in PEOPLE:
        board.agent(name).description("Speak.").consumes(Note)
    return (await board.publish(Note(text="Sing."))).run or ""


async def in_a_flow(at: Site) -> str:
    flow = (
        Flow("choir", Round)
        .start_with(_nothing)
        .fork(*(Path().then(Speak(), name=name) for name in PEOPLE), join=_join)
        .finally_(_end)
    )
    return (await at.app.start(flow, Round())).id


def _nothing(state: Round) -> None:
    """The first step."""


def _join(state: Round) -> None:
    """The join."""


def _end(state: Round) -> None:
    """The last step."""


@pytest.mark.parametrize("begin", [on_a_board, in_a_flow])
async def test_each_open_turn_comes_once(
    tmp_path: Folder, begin: Callable[[Site], Awaitable[str]]
) -> None:
    choir = Choir()
    async with site(tmp_path, engine=choir) as at, asyncio.timeout(PATIENCE):
        client, run = at.client(), await begin(at)
        for each in choir.said.values():
            await each.wait()
        async with client.stream(f"/runs/{run}/events") as stream:
            first, position = await _resets(stream, 3)
        assert [first[name]["text"] for name in PEOPLE] == [f"{name} says " for name in PEOPLE]
        assert {each["attempt"] for each in first.values()} == {2}
        assert len({each["turn"] for each in first.values()}) == 3
        choir.go["Bob"].set()  # what has ended does not come again
        async with client.stream(f"/runs/{run}/events") as stream:
            while (frame := await stream.next()) is not None:
                if frame.event == "message" and frame.data["event"]["kind"] == "turn.finished":
                    break
        async with client.stream(f"/runs/{run}/events", {"Last-Event-ID": position}) as stream:
            again, _ = await _resets(stream, 2)
            for each in choir.go.values():
                each.set()
            rest = await _until_quiet(stream, 2)
        assert again == {name: first[name] for name in ("Ann", "Cy")}
        deltas = {frame.data["agent"]: frame.data for frame in rest if frame.event == "delta"}
        assert {name: (each["offset"], each["attempt"]) for name, each in deltas.items()} == {
            "Ann": (len("Ann says "), 2),
            "Cy": (len("Cy says "), 2),
        }
        assert "reset" not in {frame.event for frame in rest}


async def _resets(stream: Any, count: int) -> tuple[dict[str, Any], str]:
    """So many answers in progress, by agent, and the position before them."""
    found, position = dict[str, Any](), "0"
    while len(found) < count:
        frame = await stream.next()
        position = frame.id or position
        if frame.event == "reset":
            assert frame.data["agent"] not in found and frame.data["offset"] == 0
            found[frame.data["agent"]] = frame.data
    return found, position


async def _until_quiet(stream: Any, turns: int) -> list[Frame]:
    """The frames up to the end of so many turns."""
    frames = list[Frame]()
    while turns:
        frames.append(frame := await stream.next())
        turns -= frame.event == "message" and frame.data["event"]["kind"] == "turn.finished"
    return frames
