"""A journey whose steps act on the world, which keeps a ledger and can fail at any point."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict

from turnloom import (
    AgentStep,
    Answer,
    AssembledContext,
    Flow,
    Loom,
    Outcome,
    Path,
    Run,
    StepContext,
    Task,
    ToolCall,
    append,
)


def add(total: int, more: int) -> int:
    """A reducer in code."""
    return total + more


class Trip(BaseModel):
    """What the steps leave."""

    model_config = ConfigDict(frozen=True)

    n: Annotated[int, add] = 0
    said: Annotated[list[str], append] = []
    cost: Annotated[int, add] = 0


class Stumbled(Exception):
    """Wanted by the test."""


@dataclass
class Ledger:
    """What was done to the world and undone, in order; `passed` counts its points, and `trap` is
    called at one of them."""

    entries: list[tuple[str, str, str]] = field(default_factory=list[tuple[str, str, str]])
    passed: int = 0
    at: int = 0
    trap: Callable[[], Awaitable[None]] | None = None

    async def point(self) -> None:
        """Pass a point."""
        self.passed += 1
        if self.passed == self.at and self.trap is not None:
            await self.trap()

    def set_trap(self, at: int, trap: Callable[[], Awaitable[None]]) -> None:
        """Count points anew, and call something at one of them."""
        self.passed, self.at, self.trap = 0, at, trap

    def act(self, what: str, key: str) -> str:
        """Do something."""
        self.entries.append(("do", what, key))
        return what

    async def effect(self, what: str, key: str) -> str:
        """Do something in one piece: it is recorded, or was not done."""
        return self.act(what, key)

    def undo(self, step: str, key: str) -> None:
        """Undo what an execution of a step did."""
        self.entries.append(("undo", step, key))

    def done_twice(self) -> list[str]:
        """What was done again although it was not undone in between."""
        found, standing = list[str](), dict[str, str]()
        for kind, what, key in self.entries:
            if kind == "undo":
                standing = {each: by for each, by in standing.items() if by != key}
            elif what in standing:
                found.append(what)
            else:
                standing[what] = key
        return found

    def stands(self) -> set[str]:
        """What was done, and not undone after that."""
        standing = dict[str, str]()
        for kind, what, key in self.entries:
            if kind == "undo":
                standing = {each: by for each, by in standing.items() if by != key}
            else:
                standing[what] = key
        return set(standing)

    def reused(self) -> list[str]:
        """Keys of undone executions that something was done under afterwards."""
        gone, found = set[str](), list[str]()
        for kind, _, key in self.entries:
            if kind == "undo":
                gone.add(key)
            elif key in gone:
                found.append(key)
        return found


async def stumble() -> None:
    """Fail."""
    raise Stumbled


def acting(ledger: Ledger, name: str) -> Callable[..., Any]:
    """A step with two effects."""

    async def step(state: Trip, ctx: StepContext) -> dict[str, Any]:
        for part in ("a", "b"):
            await ledger.point()
            what = f"{name}{state.n}{part}"
            await ctx.once(part, partial(ledger.effect, what, ctx.idempotency_key))
        await ledger.point()
        return {"said": [f"{name}{state.n}"], "cost": 1}

    step.__name__ = name
    return step


def undoing(ledger: Ledger, name: str) -> Callable[..., Any]:
    """A compensation, which leaves something in the state."""

    async def undo(state: Trip, ctx: StepContext) -> dict[str, Any]:
        assert ctx.undoes is not None
        ledger.undo(name, ctx.undoes.idempotency_key)
        return {"said": [f"undid {name}"], "cost": -1, "n": 100}

    undo.__name__ = f"undo_{name}"
    return undo


async def count(state: Trip) -> dict[str, Any]:
    """One more."""
    return {"n": 1}


def booking(ledger: Ledger) -> AgentStep[Trip]:
    """A step whose agent calls a tool twice."""

    async def book(what: str) -> str:
        """Book something."""
        return ledger.act(f"book {what}", "")

    async def agent(task: Task) -> Answer:
        await ledger.point()
        rounds = len(task.exchanges)
        if rounds < 2:
            return Answer(calls=(ToolCall("book", {"what": f"seat {rounds}"}),))
        return Answer("booked")

    class Book(AgentStep[Trip]):
        tools = (book,)
        engine = staticmethod(agent)

        def user_prompt(self, state: Trip) -> str:
            return "Book two seats."

        def apply(self, state: Trip, answer: str, context: AssembledContext) -> dict[str, Any]:
            return {"said": [answer]}

    return Book()


def journey(ledger: Ledger, *undoable: str) -> Flow[Trip]:
    """A flow with everything in it; `undoable` steps can be compensated."""

    def cfg(name: str) -> dict[str, Any]:
        return {"compensate": undoing(ledger, name)} if name in undoable else {}

    def act(name: str) -> Any:
        return acting(ledger, name)

    body = Path(count).then(act("draft"), **cfg("draft"))
    hotel = Path().then(act("hotel"), **cfg("hotel")).then(act("spa"), **cfg("spa"))
    flight = Path().await_approval("boss", name="fly").then(act("flight"), **cfg("flight"))
    cheap, dear = Path().then(act("bus"), **cfg("bus")), Path(act("taxi"))
    return (
        Flow("journey", Trip)
        .start_with(act("plan"), **cfg("plan"))
        .repeat_until(lambda state: state.n >= 2, body, max_iterations=3, name="drafts")
        .branch(lambda state: state.n == 2, {True: cheap, False: dear}, name="ride")
        .fork(hotel, flight, join=act("join"), name="stay")
        .await_approval("boss", name="ok")
        .then(booking(ledger), name="book")
        .then(act("pay"), **cfg("pay"))
        .finally_(act("send"))
    )


async def travel(run: Run[Trip], decision: str = "approve") -> Outcome[Trip]:
    """Follow a run to its end; every approval is given."""
    while (outcome := await run.outcome()).status == "waiting":
        for question in outcome.questions:
            await run.answer(question.id, decision, user_id=question.to)
    return outcome


async def undisturbed(app: Loom, *undoable: str) -> tuple[Outcome[Trip], Ledger]:
    """A run in which nothing happens."""
    ledger = Ledger()
    run = await app.start(journey(ledger, *undoable), Trip())
    return await travel(run), ledger


async def hang() -> None:
    """Do not come back."""
    await asyncio.Event().wait()
