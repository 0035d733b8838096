"""Kill a process that has a board anywhere; what comes after is as if nothing had happened."""

import asyncio
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from tests.support.boards import Place, Process, begin_process, live, takings, tales
from tests.support.plays import every
from turnloom.adapters.memory import MemoryStore
from turnloom.adapters.sqlite import SqliteStore
from turnloom.agents.spec import Answer, Task, ToolCall
from turnloom.app import Board
from turnloom.assembly.spec import ContextRequest, ContextSlice
from turnloom.board.spec import FilterConfig, Reader, artifact_type
from turnloom.reaction.spec import Batch
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
        mortal = process.mortal
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

    def hooks(self, fuse: Fuse) -> list[dict[str, Any]]:
        async def greet(context_variables: Any) -> None:
            fuse.point()

        return [
            {"trigger": "before_chat", "function": greet},
            {"trigger": "before_agent", "function": greet, "agent": "ship"},
            {"trigger": "after_chat", "function": greet},
        ]

    def watched(self, function: Any) -> Any:
        """An engine that checks what the log knows when it is asked."""

        async def answer(task: Task) -> Any:
            events = await self.place.store.log.read(task.run)
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
        if not every(await self.place.store.log.read(task.run), "retry.asked"):
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
        await board.run_until_idle(10, raise_errors=False)
        assert order.run
        if not every(await self.place.store.log.read(order.run), "retry.asked"):
            await board.retry(order.run)
        await board.run_until_idle(10, raise_errors=False)


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


async def check(place: Place, undisturbed: Place, when: str) -> None:
    """See that everything is as it would have been."""
    logs = await place.logs()
    assert tales(logs) == tales(await undisturbed.logs()), when
    assert set(takings(logs).values()) == {1}, when
    assert await board_of(place) == await board_of(undisturbed), when


@pytest.mark.repeats
async def test_a_kill_at_every_single_point_changes_nothing() -> None:
    """The log, the board and the ids of all that is on it are as without the kill."""
    undisturbed, fuse = await trade()
    assert fuse.passed > 100
    for points in range(fuse.passed):
        place, _ = await trade(points)
        await check(place, undisturbed, f"killed after {points} points")


@pytest.mark.repeats
async def test_a_fickle_pace_changes_nothing() -> None:
    """Turns that go on side by side may end in any order, also after a kill: the ids of what they
    make are the same."""
    undisturbed, fuse = await trade()
    for points in range(0, fuse.passed, 9):
        place, _ = await trade(points, delays=(3, 0, 5, 0, 9, 1, 7, 0, 2, 4, 0, 6))
        await check(place, undisturbed, f"killed after {points} points")


@settings(max_examples=20)
@given(
    kills=st.lists(st.integers(0, 100), max_size=5),
    delays=st.lists(st.integers(0, 12), max_size=20),
)
def test_any_sequence_of_kills_at_any_pace(kills: list[int], delays: list[int]) -> None:
    """Killed again and again, anywhere: it ends as it would have."""

    async def compare() -> None:
        undisturbed, _ = await trade()
        place, _ = await trade(*kills, delays=tuple(delays))
        await check(place, undisturbed, f"killed after {kills} points")

    asyncio.run(compare())


@pytest.mark.repeats
async def test_a_kill_between_log_and_index() -> None:
    """Artifacts that are kept elsewhere than the log: all of it is there in the end."""
    undisturbed, fuse = await trade(place=apart())
    for points in range(fuse.passed):
        place, _ = await trade(points, place=apart())
        await check(place, undisturbed, f"killed after {points} points")


def apart() -> Place:
    """A log, and artifacts that do not follow it by themselves."""
    return Place(MemoryStore(codec(), board=False), MemoryStore(codec(), board=False).artifacts)


@pytest.mark.repeats
async def test_a_kill_of_a_board_on_disk(tmp_path: Path) -> None:
    """The embedded store: a commit is there whole or not at all, with what it says of the board."""
    undisturbed, fuse = await trade()
    for points in range(1, fuse.passed, 7):
        store = SqliteStore(tmp_path / f"{points}.db", codec())
        try:
            place, _ = await trade(points, place=Place(store))
            await check(place, undisturbed, f"killed after {points} points")
        finally:
            await store.aclose()
