"""Kill a process that has a board anywhere; what comes after is as if nothing had happened."""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from tests.support.boards import Place, Process, begin_process, live, takings, tales
from tests.support.plays import every
from tests.support.world import PATIENCE
from turnloom import (
    Answer,
    Batch,
    Board,
    ContextRequest,
    ContextSlice,
    FilterConfig,
    Reader,
    Task,
    ToolCall,
    artifact_type,
)
from turnloom.adapters.memory import MemoryStore
from turnloom.adapters.sqlite import SqliteStore
from turnloom.log.spec import RunKey
from turnloom.runtime.logic import codec
from turnloom.testing import Fuse


@artifact_type
class Order(BaseModel):
    n: int


@artifact_type
class Checked(BaseModel):
    n: int


@artifact_type
class Priced(BaseModel):
    n: int


@artifact_type
class Filed(BaseModel):
    what: str


@artifact_type
class Line(BaseModel):
    place: int


@artifact_type
class Parcel(BaseModel):
    place: int


@artifact_type
class Report(BaseModel):
    places: list[int]


class Shop:
    """Agents that check and price an order side by side, file what comes of it, bill the order when
    both are done, ship each line of the bill, and report on so many lines at a time. The first
    bill fails."""

    def __init__(self, place: Place, delays: Iterator[int]) -> None:
        self.place = place
        self.delays = delays

    def declare(self, process: Process) -> None:
        mortal = self.mortal(process)
        for name, consumes, publishes in (
            ("check", {"types": [Order], "where": mortal(self.is_real)}, {"types": [Checked]}),
            ("price", {"types": [Order]}, {"types": [Priced]}),
            ("file", {"types": [Checked]}, {"types": [Filed]}),
            ("enter", {"types": [Priced]}, {"types": [Filed]}),
            ("bill", {"types": [Checked, Priced]}, {"types": [Line], "fan_out": 3}),
            ("ship", {"types": [Line]}, {"types": [Parcel]}),
            ("report", {"types": [Line], "batch": Batch(3)}, {"types": [Report]}),
        ):
            builder = process.board.agent(name).consumes(*consumes.pop("types"), **consumes)
            builder.publishes(*publishes.pop("types"), **publishes)
            builder.with_engines(mortal(self.watched(getattr(self, name))))
            builder.with_context(mortal(self.remember))
            if name == "bill":
                builder.with_tools(mortal(self.stamp))

    def mortal(self, process: Process) -> Callable[..., Any]:
        """What lets a process be killed around a function; where artifacts are kept elsewhere, what
        counts is how far log and index have come, and only that."""
        return process.mortal if self.place.artifacts is None else lambda function: function

    def hooks(self, fuse: Fuse) -> list[dict[str, Any]]:
        async def greet(context_variables: Any) -> None:
            if self.place.artifacts is None:
                fuse.point()

        return [
            {"trigger": "before_chat", "function": greet},
            {"trigger": "before_agent", "function": greet, "agent": "ship"},
            {"trigger": "after_chat", "function": greet},
        ]

    def watched(self, function: Any) -> Any:
        """An engine that checks what the log knows when it is asked."""

        async def answer(task: Task) -> Any:
            events = await self.place.store.log.read(RunKey("local", task.run))
            key = task.key.removeprefix(f"{task.run}/")
            assert any(event.id == f"{key}?" for event in events), "acted before saying so"
            assert not any(event.id == f"{key}.0" for event in events), "ran again"
            for _ in range(next(self.delays)):
                await asyncio.sleep(0)
            return await function(task)

        answer.__qualname__ = function.__qualname__
        return answer

    async def remember(self, request: ContextRequest) -> ContextSlice:
        return ContextSlice([{"type": "note", "payload": {"for": request.agent.name}}])

    async def is_real(self, order: Order) -> bool:
        return order.n > 0

    async def stamp(self, n: int) -> str:
        """Stamp a bill."""
        return f"No. {n}"

    async def check(self, task: Task) -> Any:
        return Checked(n=task.inputs[0].payload["n"])

    async def price(self, task: Task) -> Any:
        return Priced(n=task.inputs[0].payload["n"])

    async def file(self, task: Task) -> Any:
        return Filed(what="check")

    async def enter(self, task: Task) -> Any:
        return Filed(what="price")

    async def bill(self, task: Task) -> Any:
        if not every(await self.place.store.log.read(RunKey("local", task.run)), "retry.asked"):
            raise ValueError("there is no paper")
        if not task.exchanges:
            return Answer(calls=(ToolCall("stamp", {"n": 1}),))
        return [Line(place=each) for each in range(3)]

    async def ship(self, task: Task) -> Any:
        return Parcel(**task.inputs[0].payload)

    async def report(self, task: Task) -> Any:
        return Report(places=[each.payload["place"] for each in task.inputs])

    async def trade(self, board: Board) -> None:
        """Order, and ask for the bill again when it failed; whatever of it is left to do."""
        await board.resume()
        order = await board.publish(Order(n=1), correlation_id="c1", id="o1")
        await board.run_until_idle(PATIENCE, raise_errors=False)
        assert order.run
        if not every(await self.place.store.log.read(RunKey("local", order.run)), "retry.asked"):
            await board.retry(order.run)
        await board.run_until_idle(PATIENCE, raise_errors=False)


async def trade(
    *kills: int, place: Place | None = None, delays: tuple[int, ...] = ()
) -> tuple[Place, Fuse]:
    """A trade over several lives of a process, each killed after some points, the last one not."""
    place = place or Place()
    pauses = iter([*delays])
    shop = Shop(place, (next(pauses, 0) for _ in count()))
    for points in (*kills, None):
        fuse = Fuse(points)
        process = begin_process(place, fuse, hooks=shop.hooks(fuse))
        shop.declare(process)
        if await live(process, shop.trade) or points is None:
            break
    return place, fuse


async def board_of(place: Place) -> list[Any]:
    """What is on the board, and who took it, in whichever turn."""
    artifacts = place.artifacts or place.store.artifacts
    page = await artifacts.query(FilterConfig(), Reader(), place.clock.now(), embed_meta=True)
    found: list[Any] = []
    for item in page.items:
        taken = sorted((each.subscription, each.run) for each in item.consumptions)
        found.append((item.id, msgspec.structs.replace(item, consumptions=()), taken))
    return sorted(found)


@dataclass
class Course:
    """What a trade comes to, and how many points its last process passed."""

    tales: Any
    takings: set[int]
    board: list[Any]
    passed: int

    @classmethod
    async def of(cls, *kills: int, place: Place | None = None, **more: Any) -> "Course":
        """The course of a trade."""
        place, fuse = await trade(*kills, place=place, **more)
        logs = await place.logs()
        return cls(tales(logs), set(takings(logs).values()), await board_of(place), fuse.passed)

    def check(self, undisturbed: "Course", when: object) -> None:
        """See that everything is as it would have been."""
        assert self.tales == undisturbed.tales, when
        assert self.takings == {1}, when
        assert self.board == undisturbed.board, when


# A pace at which turns that begin together end in another order.
FICKLE = [3, 0, 5, 0, 9, 1, 7, 0, 2, 4, 0, 6]


@pytest.fixture(scope="module")
async def undisturbed() -> Course:
    return await Course.of()


@pytest.mark.repeats
@pytest.mark.doors
async def test_a_kill_at_every_single_point_changes_nothing(undisturbed: Course) -> None:
    """The log, the board and the ids of all that is on it are as without the kill."""
    assert undisturbed.passed > 100
    for points in range(undisturbed.passed):
        (await Course.of(points)).check(undisturbed, points)


@settings(max_examples=25)
@example(kills=[27], delays=FICKLE)
@example(kills=[63], delays=FICKLE)
@example(kills=[90], delays=FICKLE)
@given(
    kills=st.lists(st.integers(0, 100), max_size=5),
    delays=st.lists(st.integers(0, 12), max_size=20),
)
async def test_any_sequence_of_kills_at_any_pace(
    undisturbed: Course, kills: list[int], delays: list[int]
) -> None:
    """Turns that go on side by side may end in any order; killed again and again, anywhere, all
    ends as it would have, and the ids of what the turns make are the same."""
    (await Course.of(*kills, delays=tuple(delays))).check(undisturbed, (kills, delays))


@pytest.mark.repeats
@pytest.mark.doors
async def test_a_kill_between_log_and_index() -> None:
    """Artifacts that are kept elsewhere than the log: all of it is there in the end."""
    undisturbed = await Course.of(place=apart())
    assert undisturbed.passed > 20
    for points in range(undisturbed.passed):
        (await Course.of(points, place=apart())).check(undisturbed, points)


def apart() -> Place:
    """A log, and artifacts that do not follow it by themselves."""
    return Place(MemoryStore(codec(), board=False), MemoryStore(codec(), board=False).artifacts)


@pytest.mark.repeats
@pytest.mark.doors
async def test_a_kill_of_a_board_on_disk(undisturbed: Course, tmp_path: Path) -> None:
    """The embedded store: a commit is there whole or not at all, with what it says of the board."""
    for points in range(1, undisturbed.passed, 13):
        store = SqliteStore(tmp_path / f"{points}.db", codec())
        try:
            (await Course.of(points, place=Place(store))).check(undisturbed, points)
        finally:
            await store.aclose()
