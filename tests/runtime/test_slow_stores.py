"""Stores that take their time: what a network between does to appends and claims."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.flow.notes import Notes, bad, done, flow, note, results
from tests.support.flows import undone
from tests.support.world import PATIENCE, Refitted
from turnloom import Loom, Path
from turnloom.adapters.memory import MemoryStore
from turnloom.log.spec import Event, RunKey
from turnloom.ports import codec


class Cutting:
    """A log that cancels the task which appends the first event of a kind, before it is stored or
    after."""

    def __init__(self, log: Any, kind: str, *, is_stored: bool) -> None:
        self._log = log
        self._kind = kind
        self._is_stored = is_stored

    async def append(
        self, run: RunKey, events: Sequence[Event], expected: int, fence: int | None = None
    ) -> Sequence[Event]:
        task = asyncio.current_task()
        if task is None or all(event.kind != self._kind for event in events):
            return await self._log.append(run, events, expected, fence)
        self._kind = ""
        if self._is_stored:
            await self._log.append(run, events, expected, fence)
        task.cancel()
        return await asyncio.get_running_loop().create_future()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)


@pytest.mark.parametrize("is_stored", [False, True])
async def test_a_cancelled_append_is_made_again(is_stored: bool) -> None:
    """A step is cancelled while the answer of the log is on its way. The run knows what it stored,
    and undoes it."""
    store: Any = MemoryStore(codec())
    log = Cutting(store.log, "fork.opened", is_stored=is_stored)
    async with asyncio.timeout(PATIENCE), Loom(store=Refitted(store, log=log)) as app:
        run = await app.start(flow().fork(done("one"), Path(note("two")), join=results), Notes())
        assert (await run.outcome()).status == "failed"
        events = [event async for event in run.events()]
        assert [event.kind for event in events].count("fork.opened") == 1
        assert "first" in undone(events)


class Lingering:
    """Claims that end some time after their drive."""

    def __init__(self, claims: Any) -> None:
        self._claims = claims
        self.letting_go = asyncio.Event()

    @asynccontextmanager
    async def claim(self, run: RunKey) -> AsyncGenerator[int, None]:
        async with self._claims.claim(run) as fence:
            yield fence
            await self.letting_go.wait()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._claims, name)


async def test_a_run_is_retried_while_its_drive_lets_go_of_it() -> None:
    store: Any = MemoryStore(codec())
    claims = Lingering(store.claims)
    async with asyncio.timeout(PATIENCE), Loom(store=Refitted(store, claims=claims)) as app:
        run = await app.start(flow().then(bad()), Notes())
        assert (await run.finished()).kind == "run.failed"
        asyncio.get_running_loop().call_later(0.1, claims.letting_go.set)
        await run.retry()
        assert (await run.finished()).kind == "run.failed"
        assert "run.retried" in [event.kind async for event in run.events()]
