"""A program continues the runs of a board for the tenant that it declares it for, and no others."""

from pathlib import Path
from typing import Any

import pytest

from tests.reaction.scenes import Clerk, Order, Parcel, everything, idle, pack
from tests.support.boards import IdleScheduler
from tests.tenants.scenes import logs
from turnloom import Board, Loom
from turnloom.adapters.memory import MemoryStore
from turnloom.adapters.sqlite import SqliteStore
from turnloom.errors import UsageError
from turnloom.log.spec import RunKey
from turnloom.runtime.logic import codec
from turnloom.runtime.spec import Stop
from turnloom.testing import FakeClock


def declare(app: Loom, tenant: str) -> tuple[Board, Clerk]:
    """The same board, for a tenant."""
    board, clerk = app.board("shop", app_id=tenant), Clerk(pack)
    board.agent("clerk").consumes(Order).publishes(Parcel).with_engines(clerk)
    return board, clerk


async def leave(store: Any, tenant: str) -> str:
    """Begin a run of the board, and do not drive it."""
    async with Loom(store=store, scheduler=IdleScheduler(FakeClock())) as app:
        board, _ = declare(app, tenant)
        return str((await board.publish(Order(item=tenant))).run)


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    memory = request.param == "memory"
    return MemoryStore(codec()) if memory else SqliteStore(tmp_path / "turnloom.db", codec())


async def test_a_program_continues_the_board_runs_of_its_tenant(store: Any) -> None:
    run, own = await leave(store, "ann"), await leave(store, "bob")
    before = await logs(store, "ann")
    async with Loom(store=store) as app:
        board, clerk = declare(app, "bob")
        assert await board.resume() == [own]
        await idle(board)
        assert clerk.given == [["bob"]]
        assert await logs(store, "ann") == before
    async with Loom(store=store) as app:
        board, clerk = declare(app, "ann")
        assert await board.resume() == [run]
        await idle(board)
        assert clerk.given == [["ann"]]
        assert [each.payload["item"] for each in await everything(board, "Parcel")] == ["ann"]
    await store.aclose()


async def test_a_program_refuses_the_board_run_of_another_tenant(store: Any) -> None:
    run = await leave(store, "ann")
    before = await logs(store, "ann")
    async with Loom(store=store) as app:
        _, clerk = declare(app, "bob")
        handle = await app.resume(run, app_id="ann")
        with pytest.raises(UsageError):
            await handle.finished()
        with pytest.raises(UsageError):
            await app.history.definition(run, app_id="ann")
        assert clerk.tasks == [] and await logs(store, "ann") == before
    await store.aclose()


async def test_mail_for_another_tenant_is_kept_for_its_program(store: Any) -> None:
    """A program that hears of the mail of a run of one id does not take it."""
    run = await leave(store, "ann")
    before = await logs(store, "ann")
    async with Loom(store=store) as app:
        board, _ = declare(app, "bob")
        await store.inbox.offer(RunKey("ann", run), "cancel", Stop("u1"))
        await board.publish(Order(item="bob"))
        await idle(board)
        assert await logs(store, "ann") == before
        assert "cancel" in dict(await store.inbox.pending(RunKey("ann", run)))
    async with Loom(store=store) as app:
        board, clerk = declare(app, "ann")
        assert await board.resume() == [run]
        assert (await app.handle(run, app_id="ann").finished()).kind == "run.cancelled"
        assert clerk.tasks == []
    await store.aclose()
