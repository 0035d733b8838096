"""Count the code that the smallest runs pass through: an indicator, not a gate.

A walk is the set of calls in `src/turnloom` between two moments of a run: the functions entered,
their modules, and the number of calls from one module into another.
"""

import asyncio
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict

from turnloom import AgentStep, Answer, Flow, Loom, Task, artifact_type

HERE = str(Path(__file__).parents[1] / "src" / "turnloom")
FOLDER = {
    "orchestrator.yaml": "initial_agent: Ann\nmax_turns: 6\n",
    "agents.yaml": "Ann: {system_message: Talk.}\nBen: {system_message: Talk.}\n",
    "handoffs.yaml": (
        "handoff_rules:\n"
        "  - {source_agent: Ann, target_agent: Ben, handoff_type: after_work}\n"
        "  - {source_agent: Ben, target_agent: Ann, handoff_type: after_work}\n"
    ),
}


class Walk(NamedTuple):
    """The counts of one walk, and their target."""

    name: str
    functions: int
    modules: int
    switches: int
    aim: str


class Steps:
    """Records calls while it is active."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str]] = []
        self.switches = 0

    def note(self, frame: FrameType, event: str, arg: object) -> None:
        code = frame.f_code
        if event != "call" or code.co_name.startswith("<") or not _is_ours(frame):
            return
        self.calls.append((code.co_filename, code.co_qualname))
        caller = frame.f_back
        while caller is not None and not _is_ours(caller):
            caller = caller.f_back
        if caller is not None and caller.f_code.co_filename != code.co_filename:
            self.switches += 1

    def walk(self, name: str, aim: str) -> Walk:
        functions = {*self.calls}
        modules = {module for module, _ in functions}
        return Walk(name, len(functions), len(modules), self.switches, aim)


def _is_ours(frame: FrameType) -> bool:
    return frame.f_code.co_filename.startswith(HERE)


@contextmanager
def noted(steps: Steps) -> Iterator[None]:
    sys.setprofile(steps.note)
    try:
        yield
    finally:
        sys.setprofile(None)


class State(BaseModel):
    """The state of the flow."""

    model_config = ConfigDict(frozen=True)

    text: str = ""


class Write(AgentStep[State]):
    """One agent step."""

    def user_prompt(self, state: State) -> str:
        return "Write."

    def apply(self, state: State, answer: Any, context: Any) -> dict[str, str]:
        return {"text": answer}


async def shout(state: State, ctx: Any) -> dict[str, str]:
    return {"text": state.text.upper()}


@artifact_type(name="walks.Order")
class Order(BaseModel):
    """The artifact that wakes the agent."""


@artifact_type(name="walks.Parcel")
class Parcel(BaseModel):
    """The artifact that the agent makes."""


async def a_turn(folder: str) -> Walk:
    """Walk from one model call of a conversation to the next, after warm-up."""
    steps = Steps()

    async def engine(task: Task) -> Answer:
        if task.turn == 4:
            sys.setprofile(steps.note)
        elif task.turn == 5:
            sys.setprofile(None)
        return Answer("Go on.")

    async with Loom(store="memory", engine=engine) as app:
        await (await app.start(folder)).finished()
    return steps.walk("a warm conversation turn", "60 / 18 / 60")


async def a_hop(folder: str) -> Walk:
    async def pack(task: Task) -> Parcel:
        return Parcel()

    steps = Steps()
    async with Loom(store="memory") as app:
        board = app.board()
        board.agent("packer").consumes(Order).publishes(Parcel).with_engines(pack)
        await board.publish(Order())
        await board.run_until_idle()
        with noted(steps):
            await board.publish(Order())
            await board.run_until_idle()
    return steps.walk("board: publish to idle, one agent", "180 / 40 / 200")


async def two_steps(folder: str) -> Walk:
    async def engine(task: Task) -> Answer:
        return Answer("hm")

    steps, flow = Steps(), Flow("walk", State).start_with(Write()).then(shout)
    async with Loom(store="memory", engine=engine) as app:
        await app.run(flow, State())
        with noted(steps):
            await app.run(flow, State())
    return steps.walk("flow: one agent step, one function step", "160 / 36 / 180")


async def an_explanation(folder: str) -> Walk:
    async def engine(task: Task) -> Answer:
        return Answer("Go on.")

    steps = Steps()
    async with Loom(store="memory", engine=engine) as app:
        run = await app.start(folder)
        await run.finished()
        str(await app.explain.turn(run.id, 2))
        with noted(steps):
            str(await app.explain.turn(run.id, 2))
    return steps.walk("explain a turn", "80 / 22 / 80")


WALKS: tuple[Callable[[str], Awaitable[Walk]], ...] = (a_turn, a_hop, two_steps, an_explanation)


def walks() -> list[Walk]:
    """Take the walks of the smallest runs."""
    with tempfile.TemporaryDirectory() as where:
        for name, text in FOLDER.items():
            Path(where, name).write_text(text)

        async def every() -> list[Walk]:
            return [await walk(where) for walk in WALKS]

        return asyncio.run(every())
