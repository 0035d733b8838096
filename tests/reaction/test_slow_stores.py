"""A store that takes its time: readers of the board still find what was published before."""

import asyncio
from collections.abc import Sequence
from typing import Any

from tests.reaction.scenes import Clerk, Order, Parcel, idle
from tests.support.world import Refitted
from turnloom import DefaultCorrelationProvider, Loom
from turnloom.adapters.memory import MemoryStore
from turnloom.log.spec import Event
from turnloom.runtime.logic import codec


class SlowLog:
    """A log whose appends last so long that all else that can happen happens meanwhile."""

    def __init__(self, log: Any) -> None:
        self._log = log

    async def append(self, run: Any, events: Sequence[Event], *rest: Any) -> Sequence[Event]:
        for _ in range(100):
            await asyncio.sleep(0)
        return await self._log.append(run, events, *rest)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)


async def test_turns_that_begin_side_by_side_find_what_was_published_before() -> None:
    store = MemoryStore(codec())
    async with Loom(store=Refitted(store, log=SlowLog(store.log))) as app:
        board, readers = app.board(), [Clerk(), Clerk()]
        splitter = board.agent("splitter").consumes(Order).publishes(Parcel, fan_out=2)
        splitter.with_engines(Clerk(lambda task: [Parcel(item="a"), Parcel(item="b")]))
        for number, clerk in enumerate(readers):
            reader = board.agent(f"reader{number}").consumes(Parcel).with_engines(clerk)
            reader.with_context(DefaultCorrelationProvider())
        await board.publish(Order())
        await idle(board)
        for clerk in readers:
            for given, seen in zip(clerk.given, clerk.seen, strict=True):
                assert {*given, *seen} == {"tea", "a", "b"}
