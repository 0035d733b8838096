"""Everything of one person is removed, and that it was done is on record."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.support.tables import tables_of
from tests.support.world import Refitted
from tests.upkeep.scenes import Order, approving, cached, fill
from turnloom import Loom, NotAuthenticated, UsageError
from turnloom.adapters.memory import MemoryStore
from turnloom.adapters.sqlite import SqliteStore
from turnloom.runtime.logic import codec
from turnloom.testing.contracts.artifacts.samples import consumption

STORES = {
    "memory": lambda path: MemoryStore(codec()),
    "sqlite": lambda path: SqliteStore(path, codec()),
}


@pytest.fixture(params=STORES)
async def store(request: Any, tmp_path: Path) -> Any:
    store = STORES[request.param](tmp_path / "turnloom.db")
    yield store
    await store.aclose()


async def test_all_of_a_person_goes_and_nothing_of_others(store: Any) -> None:
    async with Loom(store=store) as app:
        ids = await fill(app)
        with pytest.raises(UsageError, match=ids["parked"]):
            await app.upkeep.erase("ann", by="admin")
        assert len(await app.runs(user="ann")) == 3
        assert await app.upkeep.removals() == []
        await app.handle(ids["parked"]).cancel()
        await app.handle(ids["parked"]).finished()
        token = f"Bearer {(await app.keys.create('ann')).token}"
        await app.keys.create("bob")
        for user in ("ann", "bob"):
            await app.start(approving(), user_id=user, at="1h")
        others = {"results": 1, "feedback": 0, "jobs": 0, "keys": 1, "schedules": 1}
        would = await app.upkeep.erase("ann", by="admin", dry_run=True)
        assert (await app.auth.authenticate(token)).user_id == "ann"
        assert len(await app.runs(user="ann")) == 3
        erased = await app.upkeep.erase("ann", by="admin")
        assert (erased.removal.runs, erased.removal.others) == (3, others)
        assert (would.removal.runs, would.removal.others) == (3, others)
        with pytest.raises(NotAuthenticated):
            await app.auth.authenticate(token)
        assert [each.user for each in await app.keys.list()] == ["bob"]
        assert [each.user for each in await store.schedules.planned("local", 9)] == ["bob"]
        assert not erased.kept
        assert [each.run for each in await app.runs()] == [ids["board"]]
        (record,) = await app.upkeep.removals()
        assert (record.by, record.what) == ("admin", "user 'ann'")
        assert (record.runs, record.others) == (3, others)
        assert record.events == erased.removal.events
        assert not await app.upkeep.removals(app_id="it's; --")
        again = await app.upkeep.erase("ann", by="admin")
        assert (again.removal.runs, again.kept) == (0, {})
        assert len(await app.upkeep.removals()) == 2
        assert (await app.upkeep.erase("eve", app_id="it's; --")).removal.runs == 1


async def test_artifacts_that_others_took_go_once_their_runs_ended(store: Any) -> None:
    async with Loom(store=store) as app:
        ann = app.board("desk", user_id="ann")
        made = await ann.publish(Order(what="tea"))
        await ann.run_until_idle()
        taken = await app.start(approving(), user_id="bob")
        await taken.outcome()
        consumed = consumption(made.id, run=taken.id)
        await store.artifacts.consume("local", [consumed])
        kept = (await app.upkeep.erase("ann")).kept
        assert [*kept] == [made.run]
        await taken.cancel()
        await taken.finished()
        erased = await app.upkeep.erase("ann")
        assert (erased.removal.runs, erased.removal.artifacts, erased.kept) == (1, 1, {})
        assert [each.run for each in await app.runs()] == [taken.id]


async def test_a_run_of_a_correlation_that_is_erased_is_not_begun_again(store: Any) -> None:
    async def publish(app: Loom, user: str) -> str:
        board = app.board("desk", user_id=user)
        made = await board.publish(Order(what="x"), correlation_id="one")
        await board.run_until_idle()
        return made.run or ""

    runs = list[str]()
    for user in ("ann", "bob", "ann"):
        async with Loom(store=store) as app:
            runs.append(await publish(app, user))
    async with Loom(store=Refitted(store, removals=None)) as app:
        assert not [each async for each in app.history.prune("0s")]
        with pytest.raises(UsageError, match="removals"):
            await app.upkeep.erase("ann")
    async with Loom(store=store) as app:
        assert (await app.upkeep.erase("ann")).removal.runs == 2
        assert [each.run for each in await app.runs()] == [runs[1]]
    async with Loom(store=store) as app:
        assert await publish(app, "bob") not in runs


async def test_two_at_once_remove_each_run_once(store: Any) -> None:
    async with Loom(store=store) as app:
        for _ in range(6):
            await app.run(cached(), user_id="ann")
        both = await asyncio.gather(app.upkeep.erase("ann"), app.upkeep.erase("ann", by="eve"))
        assert not await app.runs()
        records = await app.upkeep.removals()
        assert sum(each.runs for each in records) == 6
        assert sum(each.removal.runs for each in both) == 6


async def test_a_run_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    path = tmp_path / "turnloom.db"
    async with Loom(store=path) as app:
        ids = await fill(app)
        await app.handle(ids["parked"]).cancel()
        await app.handle(ids["parked"]).finished()
    with tables_of(path) as tables:
        tables.rewrite(ids["parked"], lambda _: b"{")
    async with Loom(store=path) as app:
        kept = (await app.upkeep.erase("ann")).kept
        assert [*kept] == [ids["parked"]]
        assert [each async for each in app.history.prune("0s")]
        assert not await app.runs()
