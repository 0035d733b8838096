"""Boards to explain: a shop whose orders hold something that is nobody's business."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from pydantic import BaseModel

from turnloom import Event, Loom, Task
from turnloom.agents.spec import Engine
from turnloom.app import Board
from turnloom.board.spec import artifact_type
from turnloom.explain.logic.route import explain_reaction
from turnloom.explain.logic.turn import explain_turn
from turnloom.explain.spec.board import ConsumptionExplained, OfferExplained
from turnloom.explain.spec.turn import TurnExplained

# What no verdict may tell.
CARD = "4000-1234"

# Long enough for whatever happens, on a machine that has much else to do.
PATIENCE = 20.0


@artifact_type(name="shop.Order")
class Order(BaseModel):
    """What somebody wants."""

    item: str
    card: str = CARD
    number: int | None = None


@artifact_type(name="shop.Payment")
class Payment(BaseModel):
    """What somebody paid."""

    number: int
    card: str = CARD


@artifact_type(name="shop.Parcel")
class Parcel(BaseModel):
    """What is on its way."""

    label: str


class Clerk:
    """Answers as it is told to, and keeps every task."""

    def __init__(self, answer: Callable[[Task], Any]) -> None:
        self.answer = answer
        self.tasks: list[Task] = []

    async def __call__(self, task: Task) -> Any:
        self.tasks.append(task)
        return self.answer(task)


def pack(task: Task) -> Parcel:
    """A parcel with what was ordered."""
    return Parcel(label=f"{task.inputs[0].payload.get('item', 'things')}!")


def engine(answer: Callable[[Task], Any] = pack) -> Any:
    """An engine that answers with what a function gives."""
    return Clerk(answer)


def clerk(given: Any) -> Clerk:
    """The engine as what it is."""
    assert isinstance(given, Clerk)
    return given


class Shop(NamedTuple):
    """A board, and the app that it belongs to."""

    app: Loom
    board: Board

    async def settle(self) -> "ExceptionGroup[Exception] | None":
        """Wait until nothing is going on; what failed."""
        return await self.board.run_until_idle(PATIENCE, raise_errors=False)

    async def events(self, run: str | None) -> list[Event]:
        """What happened in a run."""
        assert run is not None
        return list(await self.app.history.events(run))

    async def runs(self, **of: Any) -> list[str]:
        """The runs that began with these fields, the first one first."""
        found = [summary.run for summary in await self.app.runs()][::-1]
        began = {run: (await self.app.history.events(run))[0].data for run in found}
        return [
            run
            for run, fact in began.items()
            if all(getattr(fact, field) == value for field, value in of.items())
        ]


@asynccontextmanager
async def shop(engine: Engine | None = None) -> AsyncGenerator[Shop]:
    """A board without agents."""
    async with Loom(store="memory", engine=engine) as app:
        yield Shop(app, app.board("shop"))


def seqs(events: Sequence[Event], kind: str) -> list[int]:
    """Where events of a kind stand."""
    return [event.seq for event in events if event.kind == kind]


def turn(events: Sequence[Event], number: int = 1) -> TurnExplained:
    """A turn, whose record is sound."""
    found = explain_turn(events, number)
    assert found.verified and not found.doubts
    return found


def offer(events: Sequence[Event], seq: int) -> OfferExplained:
    """What became of an artifact."""
    found = explain_reaction(events, seq)
    assert isinstance(found, OfferExplained)
    return found


def taking(events: Sequence[Event], seq: int) -> ConsumptionExplained:
    """Why something was taken."""
    found = explain_reaction(events, seq)
    assert isinstance(found, ConsumptionExplained)
    return found
