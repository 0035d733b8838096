"""Following a run: events are read once for all, and a slow follower reads them again."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict

from tests.support.world import Refitted
from turnloom import Event, Flow, Loom, Path, Run
from turnloom.adapters.memory import MemoryStore
from turnloom.errors import StoreUnavailable
from turnloom.runtime.logic import codec

FOLLOWERS = 50
PASSES = 40
SOON = 60.0


class Count(BaseModel):
    model_config = ConfigDict(frozen=True)

    number: int = 0


class CountingLog:
    """A log that counts the events that it gives to those who subscribe."""

    def __init__(self, log: Any) -> None:
        self._log = log
        self.given = 0

    async def subscribe(self, run: Any, after: int = 0) -> AsyncIterator[Event]:
        async with aclosing(self._log.subscribe(run, after)) as events:
            async for event in events:
                self.given += 1
                yield event

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)


class Counted:
    """An app over such a log, and a flow that counts once its gate is open."""

    def __init__(self) -> None:
        store = MemoryStore(codec())
        self.log = CountingLog(store.log)
        self.app = Loom(store=Refitted(store, log=self.log))
        self.gate = asyncio.Event()

    def flow(self, passes: int) -> Flow[Count]:
        async def begin(state: Count) -> None:
            await self.gate.wait()

        async def count(state: Count) -> dict[str, int]:
            return {"number": state.number + 1}

        flow = Flow("count", Count).start_with(begin)
        return flow.repeat_until(
            lambda state: state.number >= passes, Path(count), max_iterations=passes
        )


@pytest.fixture
async def counted() -> AsyncIterator[Counted]:
    made = Counted()
    async with asyncio.timeout(SOON), made.app:
        yield made


async def follow(run: Run[Any], begun: asyncio.Semaphore, after: int = 0) -> list[int]:
    """The positions that a follower sees; it says when it has seen what is there at first."""
    seen: list[int] = []
    async for event in run.events(after):
        seen.append(event.seq)
        if event.kind == "step.started" and len(seen) + after == event.seq:
            begun.release()
    return seen


async def test_events_are_read_once_however_many_follow(counted: Counted) -> None:
    run = await counted.app.start(counted.flow(PASSES), Count())
    begun = asyncio.Semaphore(0)
    following = [asyncio.create_task(follow(run, begun, n % 3)) for n in range(FOLLOWERS)]
    for _ in range(FOLLOWERS):
        await begun.acquire()
    before = counted.log.given
    counted.gate.set()
    last = (await run.finished()).seq
    for number, each in enumerate(following):
        assert await each == [*range(number % 3 + 1, last + 1)]
    assert counted.log.given - before < 2 * last


async def test_a_slow_follower_misses_nothing_and_reads_the_store_again(counted: Counted) -> None:
    """What it does not take is not held for it: the store has it."""
    passes = 400
    run = await counted.app.start(counted.flow(passes), Count())
    async with aclosing(run.events()) as events:
        seen = [(await anext(events)).seq]
        counted.gate.set()
        last = (await run.finished()).seq
        given = counted.log.given
        assert last > 1000
        seen += [event.seq async for event in events]
    assert seen == [*range(1, last + 1)]
    assert counted.log.given - given > last / 2


async def test_one_that_stops_following_leaves_the_others_alone(counted: Counted) -> None:
    run = await counted.app.start(counted.flow(PASSES), Count())
    begun = asyncio.Semaphore(0)
    first, second = (asyncio.create_task(follow(run, begun)) for _ in range(2))
    for _ in range(2):
        await begun.acquire()
    first.cancel()
    await asyncio.wait({first})
    counted.gate.set()
    assert len(await second) == (await run.finished()).seq


class LostLog:
    """A log that refuses to store, and does not say what it holds, once it is lost."""

    def __init__(self, log: Any) -> None:
        self._log = log
        self.is_lost = False

    async def append(self, *given: Any) -> Any:
        if self.is_lost:
            raise StoreUnavailable("The store is away.")
        return await self._log.append(*given)

    async def read(self, *given: Any) -> Any:
        if self.is_lost:
            await asyncio.Event().wait()
        return await self._log.read(*given)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)


async def test_a_follower_does_not_wait_for_a_store_that_is_away() -> None:
    """It has the error of the drive, which waited for the store."""
    store = MemoryStore(codec())
    log = LostLog(store.log)

    async def lose(state: Count) -> None:
        log.is_lost = True

    async with asyncio.timeout(SOON), Loom(store=Refitted(store, log=log)) as app:
        run = await app.start(Flow("lost", Count).start_with(lose), Count())
        with pytest.raises(StoreUnavailable):
            async for _ in run.events():
                pass
