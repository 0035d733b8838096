"""The tables of the scheduler have versions, and `turnloom store migrate` updates them."""

from collections.abc import Sequence

import psycopg
import pytest

from turnloom import Loom
from turnloom.adapters.procrastinate import ProcrastinateScheduler
from turnloom.adapters.procrastinate.schema import OURS, THEIRS, known
from turnloom.errors import StoreUnavailable
from turnloom.runtime.spec import Migration
from turnloom.testing.contracts.facts import key
from turnloom.testing.contracts.scheduler import served, until

pytestmark = pytest.mark.doors


async def run_sql(url: str, *statements: str) -> None:
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        for each in statements:
            await connection.execute(each)  # type: ignore[arg-type]


def shared(url: str) -> Loom:
    return Loom(store=url, scheduler="procrastinate")


async def migrated(app: Loom) -> Sequence[Migration]:
    return [each async for each in app.upkeep.migrate()]


async def is_refused(url: str) -> str:
    """What a process says that meets the tables, and stops."""
    scheduler = ProcrastinateScheduler(url)
    try:
        with pytest.raises(StoreUnavailable) as caught:
            await scheduler.serve(lambda run, held=None: None, slots=1, limits={})
        return str(caught.value)
    finally:
        await scheduler.aclose()


async def test_an_empty_database_lacks_all_steps(postgres_url: str) -> None:
    async with shared(postgres_url) as app:
        wanted = [each.name for each in await app.upkeep.pending_migrations()]
        assert f"{THEIRS} tables" in wanted and f"{OURS} queue" in wanted
        taken = [each.name for each in await migrated(app)]
        assert taken == wanted
        assert (await app.upkeep.pending_migrations(), await migrated(app)) == ([], [])
    scheduler = ProcrastinateScheduler(postgres_url)
    async with served(scheduler):
        await scheduler.wake(key("a"))
        await until(scheduler, "a", "idle")
    await scheduler.aclose()


async def test_older_tables_are_refused_until_they_are_updated(postgres_url: str) -> None:
    """Those of the first version: without what the second one added."""
    scheduler = ProcrastinateScheduler(postgres_url)
    await scheduler.status(key("a"))
    await scheduler.aclose()
    await run_sql(
        postgres_url,
        "DROP FUNCTION turnloom_fetch, turnloom_relax, turnloom_limit, turnloom_set_limits",
        "CREATE FUNCTION turnloom_fetch(bigint, text[]) RETURNS void LANGUAGE sql AS ''",
        "ALTER TABLE turnloom_queue DROP COLUMN since, DROP COLUMN held",
        f"UPDATE turnloom_schema SET version = 1 WHERE part = '{OURS}'",
    )
    assert "turnloom store migrate" in await is_refused(postgres_url)
    async with shared(postgres_url) as app:
        await app.upkeep.pending_migrations()
        steps = [each for each in await migrated(app) if each.name.startswith(OURS)]
        assert [each.version for each in steps] == [*range(2, known().ours + 1)]
    scheduler = ProcrastinateScheduler(postgres_url)
    async with served(scheduler):
        await scheduler.wake(key("a"))
        await until(scheduler, "a", "idle")
    await scheduler.aclose()


@pytest.mark.parametrize("part", [OURS, THEIRS])
async def test_later_tables_are_refused(postgres_url: str, part: str) -> None:
    scheduler = ProcrastinateScheduler(postgres_url)
    await scheduler.status(key("a"))
    await scheduler.aclose()
    await run_sql(
        postgres_url, f"UPDATE turnloom_schema SET version = version + 1 WHERE part = '{part}'"
    )
    assert "later release" in await is_refused(postgres_url)
    async with shared(postgres_url) as app:
        with pytest.raises(StoreUnavailable):
            await app.upkeep.pending_migrations()


async def test_older_tables_of_procrastinate_are_updated(postgres_url: str) -> None:
    """By its own migrations: here, the last one is missing."""
    scheduler = ProcrastinateScheduler(postgres_url)
    await scheduler.status(key("a"))
    await scheduler.aclose()
    await run_sql(
        postgres_url, f"UPDATE turnloom_schema SET version = version - 1 WHERE part = '{THEIRS}'"
    )
    assert "turnloom store migrate" in await is_refused(postgres_url)


async def test_tables_that_someone_else_made_are_left_to_them(postgres_url: str) -> None:
    scheduler = ProcrastinateScheduler(postgres_url)
    await scheduler.status(key("a"))
    await scheduler.aclose()
    await run_sql(postgres_url, f"DELETE FROM turnloom_schema WHERE part = '{THEIRS}'")
    scheduler = ProcrastinateScheduler(postgres_url)
    assert await scheduler.status(key("a")) == "idle"
    assert await scheduler.migrator.pending() == []
    await scheduler.aclose()
