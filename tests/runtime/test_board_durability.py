"""What comes at the same time, or is cut off, on a board: nothing is lost or counts twice."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from pydantic import BaseModel

from tests.support.boards import Place, begin_process, go_round, serving, takings
from tests.support.world import PATIENCE
from turnloom import (
    Artifact,
    ArtifactExists,
    Batch,
    Board,
    Event,
    FilterConfig,
    Task,
    artifact_type,
)
from turnloom.adapters.memory import MemoryStore
from turnloom.errors import StoreUnavailable
from turnloom.log.spec import RunKey
from turnloom.runtime.logic import codec
from turnloom.testing import Killed


@artifact_type
class Part(BaseModel):
    n: int


@artifact_type
class Plan(BaseModel):
    n: int


@artifact_type
class Sum(BaseModel):
    of: list[int]


async def add(task: Task) -> Any:
    return Sum(of=[each.payload["n"] for each in task.inputs])


async def nothing(task: Task) -> Any:
    return ""


def adding(board: Board, **consumes: Any) -> None:
    board.agent("add").consumes(Part, **consumes).publishes(Sum).with_engines(add)


def pairing(board: Board) -> None:
    board.agent("pair").consumes(Part, Plan).publishes(Sum).with_engines(add)


async def sums(board: Board) -> list[list[int]]:
    items, _ = await board.query_artifacts(FilterConfig(types={"Sum"}))
    return [each.payload["of"] for each in items if isinstance(each, Artifact)]


async def test_publishing_one_id_many_times_at_once() -> None:
    """All of them are told of the one artifact, whoever was first."""
    process = begin_process(Place())
    pairing(process.board)
    async with serving(process) as board:
        for correlation in ("c", None):
            same = [
                board.publish(Part(n=1), correlation_id=correlation, id=f"{correlation}")
                for _ in range(5)
            ]
            published = await asyncio.gather(*same)
            assert len({(each.id, each.run) for each in published}) == 1
        await board.run_until_idle(PATIENCE)


@pytest.mark.parametrize("correlations", [["c"] * 5, ["c1", "c2", "c3", "c4", "c5"]])
async def test_publishing_other_content_under_one_id_at_once(correlations: list[str]) -> None:
    """One of them is published, the others are refused, and no run is kept from going on."""
    place = Place()
    process = begin_process(place)
    pairing(process.board)
    async with serving(process) as board:
        for each in set(correlations):
            await board.publish(Part(n=0), correlation_id=each)
        await board.run_until_idle(PATIENCE)
        told = await asyncio.gather(
            *(
                board.publish(Part(n=n), correlation_id=c, id="x")
                for n, c in enumerate(correlations)
            ),
            return_exceptions=True,
        )
        kinds = Counter(type(each) for each in told)
        assert kinds == {Artifact: 1, ArtifactExists: 4}
        for each in set(correlations):
            await board.publish(Plan(n=9), correlation_id=each)
        await board.run_until_idle(PATIENCE, raise_errors=False)
        assert await sums(board) == [[0, 9]] * len(set(correlations))


async def test_a_run_that_ends_while_something_comes() -> None:
    """Whoever waits for the board to be idle is not kept waiting by a run that ended meanwhile."""
    process = begin_process(Place())
    adding(process.board)
    async with serving(process) as board:
        for n in range(20):
            coming = [board.publish(Part(n=n), correlation_id="c") for _ in range(3)]
            await asyncio.gather(*coming)
            await board.run_until_idle(PATIENCE)
        assert len(await sums(board)) == 60


async def test_a_collecting_run_that_was_cancelled() -> None:
    """What waited in it is given up; what comes afterwards is collected by the next one."""
    place = Place()
    process = begin_process(place)
    adding(process.board, batch=Batch(2))
    async with serving(process) as board:
        await board.publish(Part(n=1))
        await board.run_until_idle(PATIENCE)
        [collecting] = [run for run, log in (await place.logs()).items() if log[0].data.collects]
        assert await board.cancel(collecting) == 1
        for n in (2, 3, 4, 5):
            await board.publish(Part(n=n))
            await board.run_until_idle(PATIENCE)
        assert await sums(board) == [[2, 3], [4, 5]]


async def test_a_correlation_under_another_plan() -> None:
    """Two processes that declare the same find the same run of a correlation, also if one of them
    has seen it under another plan before."""
    place = Place()
    first = begin_process(place)
    adding(first.board)
    async with serving(first) as board:
        for n in range(3):
            await board.publish(Part(n=n), correlation_id="c")
            await board.run_until_idle(PATIENCE)
        pairing(board)
        await board.publish(Part(n=7), correlation_id="c")
        await board.run_until_idle(PATIENCE)
    second = begin_process(place)
    adding(second.board)
    pairing(second.board)
    async with serving(second) as board:
        await board.publish(Plan(n=8), correlation_id="c")
        await board.run_until_idle(PATIENCE)
        assert [7, 8] in await sums(board)


class SlowLog:
    """A log that takes its time with the end of a turn, and says so."""

    def __init__(self, log: Any, turn: str) -> None:
        self._log = log
        self._end = f"{turn}/end"
        self.read, self.subscribe, self.ends = log.read, log.subscribe, log.ends
        self.runs, self.named = log.runs, log.named
        self.reached = asyncio.Event()

    async def append(
        self, run: RunKey, events: Sequence[Event], expected: int, fence: int | None = None
    ) -> Sequence[Event]:
        if any(event.id == self._end for event in events):
            self.reached.set()
            await go_round()
        return await self._log.append(run, events, expected, fence)


async def test_a_run_does_not_end_before_its_turns_are_stored() -> None:
    """While the last turns are being stored, what the first one made is offered in vain."""
    place = Place()
    log = place.store.log = SlowLog(place.store.log, "t2")
    process = begin_process(place)
    judging = asyncio.Event()

    async def plan(task: Task) -> Any:
        return Plan(n=1)

    async def wait(task: Task) -> Any:
        await judging.wait()
        return ""

    async def is_wanted(plan: Plan) -> bool:
        judging.set()
        await log.reached.wait()
        return False

    process.board.agent("one").consumes(Part).publishes(Plan).with_engines(plan)
    process.board.agent("two").consumes(Part).with_engines(wait)
    process.board.agent("three").consumes(Part).with_engines(wait)
    process.board.agent("never").consumes(Plan, where=is_wanted).with_engines(nothing)
    async with serving(process) as board:
        published = await board.publish(Part(n=1))
        await board.run_until_idle(PATIENCE)
        assert published.run
        assert (await log.read(RunKey("local", published.run)))[-1].kind == "run.finished"


class Locked:
    """An inbox that somebody else holds locked: whatever is asked first is refused."""

    def __init__(self, inbox: Any) -> None:
        self._inbox = inbox
        self._refused: set[str] = set()
        self.offer = inbox.offer
        self.listening = asyncio.Event()

    def _refuse(self, what: str) -> None:
        if what not in self._refused:
            self._refused.add(what)
            raise StoreUnavailable("The store is locked.")

    def arrivals(self) -> AsyncIterator[str]:
        self._refuse("arrivals")
        self.listening.set()
        return self._inbox.arrivals()

    async def pending(self, run: RunKey) -> Sequence[tuple[str, Any]]:
        self._refuse("pending")
        return await self._inbox.pending(run)


async def test_mail_is_noticed_after_the_store_was_away() -> None:
    """A process whose store was locked for a moment still drives what others bring mail to."""
    place = Place()
    another = begin_process(place, idle=True)
    place.store.inbox = locked = Locked(place.store.inbox)
    process = begin_process(place)
    pairing(another.board)
    pairing(process.board)
    async with serving(another) as others, serving(process) as board, asyncio.timeout(PATIENCE):
        assert await board.resume() == []
        await locked.listening.wait()
        published = await others.publish(Part(n=1), correlation_id="c")
        another.fuse.left = 1  # it is killed when it has brought its mail, and before anything else
        with pytest.raises(Killed):
            await others.publish(Plan(n=2), correlation_id="c")
        assert published.run
        kinds = [event.kind async for event in process.app.handle(published.run).events()]
        assert kinds[-1] == "run.finished"
        assert await sums(board) == [[1, 2]]


async def test_a_set_that_was_collected_is_taken_once() -> None:
    """In the index, too: by the turn of the run that the set got."""
    place = Place()
    process = begin_process(place)
    adding(process.board, batch=Batch(2))
    async with serving(process) as board:
        await board.publish_many([Part(n=1), Part(n=2)])
        await board.run_until_idle(PATIENCE)
        items, _ = await board.query_artifacts(FilterConfig(types={"Part"}), embed_meta=True)
        for each in items:
            [taken] = each.consumptions  # type: ignore[union-attr]
            assert taken.turn == 1
        assert set(takings(await place.logs()).values()) == {1}


async def test_publishing_again_what_a_killed_process_left_out_of_the_index() -> None:
    """The log has it and the index does not: it is put there."""
    store = MemoryStore(codec(), board=False)
    elsewhere = MemoryStore(codec(), board=False).artifacts
    place = Place(store, MemoryStore(codec(), board=False).artifacts)
    async with serving(begin_process(place, idle=True)) as board:
        published = await board.publish(Part(n=1), id="x")
    async with serving(begin_process(Place(store, elsewhere), idle=True)) as board:
        assert not await elsewhere.find("local", "x")
        assert await board.publish(Part(n=1), id="x") == published
        assert await elsewhere.find("local", "x")
        with pytest.raises(ArtifactExists):
            await board.publish(Part(n=2), id="x")
