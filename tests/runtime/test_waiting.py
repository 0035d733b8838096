"""Messages to a run that another process drives, and does not take in."""

import asyncio
import os
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict

from tests.support.world import Refitted
from turnloom import Flow, Loom, RunBusy
from turnloom.adapters.memory import MemoryStore
from turnloom.adapters.sqlite import SqliteStore
from turnloom.log.spec import RunKey
from turnloom.runtime.logic import codec
from turnloom.runtime.ports import Claims, Inbox
from turnloom.runtime.spec import Holder
from turnloom.testing import FakeClock


class Order(BaseModel):
    model_config = ConfigDict(frozen=True)

    paid: bool = False


def pay(order: Order) -> dict[str, bool]:
    return {"paid": True}


ORDERS = Flow("orders", Order).start_with(pay).await_approval("ann", name="ok")


async def test_a_run_that_another_process_drives_is_not_resumed(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    async with Loom(store=path) as app, aclosing(SqliteStore(path, codec())) as other:
        outcome = await app.run(ORDERS)
        run = app.handle(outcome.run_id)
        assert await run.holder() is None
        async with other.claims.claim(RunKey("local", run.id)):
            holder = await run.holder()
            assert holder is not None and not holder.is_late
            with pytest.raises(RunBusy, match=holder.process):
                await app.resume(run.id)
        await app.resume(run.id)
        assert await run.cancel()


@pytest.mark.doors
async def test_messages_to_a_run_that_is_held_are_given_up(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    async with Loom(store=path) as app, aclosing(SqliteStore(path, codec())) as other:
        run = app.handle((await app.run(ORDERS)).run_id)
        async with other.claims.claim(RunKey("local", run.id)):
            answer = run.answer(None, {"decision": "approve"}, user_id="ann")
            said = await asyncio.gather(answer, run.cancel(), return_exceptions=True)
            assert [type(each) for each in said] == [RunBusy, RunBusy]
            assert all(str(os.getpid()) in str(each) for each in said)
        await app.resume(run.id)
        assert (await run.finished()).kind == "run.cancelled", "they were kept"


class BusyAtFirst:
    """Claims of a store on which another process holds each run at first, for an instant."""

    def __init__(self, claims: Claims) -> None:
        self._claims = claims
        self.refused: list[RunKey] = []

    @asynccontextmanager
    async def claim(self, run: RunKey) -> AsyncGenerator[int]:
        if run not in self.refused:
            self.refused.append(run)
            raise RunBusy("Another process starts it.")
        async with self._claims.claim(run) as fence:
            yield fence

    async def held(self, run: RunKey) -> Holder | None:
        return await self._claims.held(run)


async def test_a_held_run_is_tried_again_while_the_clock_of_the_app_stands() -> None:
    store = MemoryStore(codec())
    busy = BusyAtFirst(store.claims)
    held = Refitted(store, claims=busy)
    async with asyncio.timeout(60), Loom(store=held, clock=FakeClock()) as app:
        outcome = await app.run(Flow("pays", Order).start_with(pay))
    assert outcome.state == Order(paid=True)
    assert [run.id for run in busy.refused] == [outcome.run_id]


class BrokenMail:
    """An inbox whose arrivals fail by a mistake in its code."""

    def __init__(self, inbox: Inbox, fails: asyncio.Event) -> None:
        self._inbox = inbox
        self._fails = fails

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inbox, name)

    async def arrivals(self) -> AsyncGenerator[RunKey]:
        await self._fails.wait()
        raise LookupError("a mistake")
        yield


async def test_followers_learn_that_nothing_is_driven_any_more() -> None:
    begun = asyncio.Event()

    async def wait(order: Order) -> None:
        begun.set()
        await asyncio.Event().wait()

    store = MemoryStore(codec())
    vars(store)["inbox"] = BrokenMail(store.inbox, begun)
    with pytest.raises(ExceptionGroup) as closed:
        async with asyncio.timeout(60), Loom(store=store) as app:
            run = await app.start(Flow("waits", Order).start_with(wait))
            with pytest.raises(LookupError, match="a mistake"):
                await run.finished()
    assert closed.group_contains(LookupError)
