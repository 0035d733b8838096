"""Files of earlier releases: refused as they are, and updated by the migrator."""

import os
import sqlite3
import sys
from collections.abc import Sequence
from contextlib import aclosing, closing
from pathlib import Path

import anyio
import pytest

from tests.support.raising import raising
from turnloom.adapters.sqlite import SqliteStore, queries
from turnloom.adapters.sqlite.connections import migrations
from turnloom.errors import StoreUnavailable
from turnloom.log.spec import RunFilter
from turnloom.testing.contracts.events import check_filters, write_runs
from turnloom.testing.contracts.facts import CODEC, TENANT, events, key, started

# What takes a file back to the schema before.
TO_15 = "DROP TABLE jobs; DROP TABLE job_results; PRAGMA user_version = 15;"
TO_14 = """
    DROP TABLE api_keys; DROP TABLE audit; DROP TABLE feedback; DROP TABLE firings;
    DROP TABLE planned_starts; PRAGMA user_version = 14;
"""
TO_13 = """
    DROP TABLE removals; DROP TABLE removed_runs;
    DROP INDEX results_of; ALTER TABLE results DROP COLUMN user;
    PRAGMA user_version = 13;
"""
TO_12 = """
    DROP TABLE branches; DROP VIEW log;
    CREATE VIEW log AS SELECT runs.id AS run, batches.data AS data FROM runs
        JOIN batches ON pos > n << 32 AND pos < (n + 1) << 32;
    PRAGMA user_version = 12;
"""
TO_11 = """
    DROP INDEX rare_runs;
    ALTER TABLE runs DROP COLUMN workflow; ALTER TABLE runs DROP COLUMN user;
    ALTER TABLE runs DROP COLUMN started; UPDATE runs SET status = NULL WHERE ended IS NULL;
    PRAGMA user_version = 11;
"""
EARLIER = {
    15: TO_15,
    14: TO_15 + TO_14,
    13: TO_15 + TO_14 + TO_13,
    12: TO_15 + TO_14 + TO_13 + TO_12,
    11: TO_15 + TO_14 + TO_13 + TO_12 + TO_11,
}


async def earlier_file(path: Path, version: int) -> Sequence[object]:
    """Make a file of an earlier release with 40 runs and a spoiled one; returns its list."""
    async with aclosing(SqliteStore(path, CODEC)) as store:
        await write_runs(store.log, 40)
        await store.log.append(key("spoiled"), events("spoiled", 1), 0)
        listed = await store.log.runs(TENANT, 100)
    with closing(sqlite3.connect(path)) as file:
        file.executescript(EARLIER[version])
        file.execute("UPDATE batches SET data = x'7b' WHERE pos = (SELECT max(pos) FROM batches)")
        file.commit()
    return listed


async def migrated(path: Path) -> list[int]:
    async with aclosing(SqliteStore(path, CODEC)) as store:
        return [each.version async for each in store.migrator.migrate()]


def schema_of(path: Path) -> list[tuple[str, str]]:
    """What a file declares, without the spaces that are kept of each declaration."""
    with closing(sqlite3.connect(path)) as file:
        found = file.execute("SELECT name, sql FROM sqlite_master ORDER BY name").fetchall()
    return [(name, " ".join((sql or "").split())) for name, sql in found]


def version_of(path: Path) -> int:
    with closing(sqlite3.connect(path)) as file:
        return file.execute("PRAGMA user_version").fetchone()[0]


def test_the_last_file_is_the_schema_of_this_release() -> None:
    versions = [each.version for each in migrations()]
    assert versions == list(range(11, queries.VERSION + 1))


@pytest.mark.parametrize("version", EARLIER)
async def test_a_file_of_an_earlier_release(tmp_path: Path, version: int) -> None:
    path = tmp_path / "turnloom.db"
    before = await earlier_file(path, version)
    content = path.read_bytes()
    async with aclosing(SqliteStore(path, CODEC)) as store:
        with raising(StoreUnavailable, str(path), "turnloom store migrate"):
            await store.log.append(key("new"), events("new", 1), 0)
        with pytest.raises(StoreUnavailable):
            await store.log.read(key("spoiled"))
        assert path.read_bytes() == content
        pending = [each.version for each in await store.migrator.pending()]
        assert pending == list(range(version + 1, queries.VERSION + 1))
        assert path.read_bytes() == content
    assert await migrated(path) == pending
    assert await migrated(path) == []
    async with aclosing(SqliteStore(path, CODEC)) as store:
        await check_filters(store.log)
        assert [*await store.log.runs(TENANT, 100)][1:] == [*before][1:]
        (broken,) = await store.log.runs(TENANT, 9, which=RunFilter(frozenset({"broken"})))
        assert broken[0].run == "spoiled"
        await store.log.append(key("new"), [started("new", "shop", "ann", 0)], 0)
        await store.log.branch(key("branch"), "new", 1, events("branch", 1, after=1))
        await check_filters(store.log)
    assert version_of(path) == queries.VERSION
    with closing(sqlite3.connect(path)) as file:
        listed = file.execute("SELECT run, seq FROM log WHERE run IN ('new', 'branch')").fetchall()
    assert listed == [("new", 1), ("branch", 1), ("branch", 2)]


async def test_a_file_that_is_set_up_is_like_one_that_was_migrated(tmp_path: Path) -> None:
    at_once, steps = tmp_path / "at_once.db", tmp_path / "steps.db"
    async with aclosing(SqliteStore(at_once, CODEC)) as store:
        await store.log.read(key("a"))
    assert len(await migrated(steps)) == len(migrations())
    assert schema_of(at_once) == schema_of(steps)
    assert os.stat(steps).st_mode & 0o777 == 0o600


async def test_a_step_that_fails_leaves_those_before(tmp_path: Path) -> None:
    path = tmp_path / "turnloom.db"
    await earlier_file(path, 12)
    with closing(sqlite3.connect(path)) as file:
        file.execute("CREATE TABLE removals (x)")
    with pytest.raises(StoreUnavailable):
        await migrated(path)
    assert version_of(path) == 13
    with closing(sqlite3.connect(path)) as file:
        file.execute("DROP TABLE removals")
    assert await migrated(path) == [14, 15, 16]


KILLED = """
import asyncio, os, signal, sys
from turnloom.adapters.sqlite import SqliteStore
from turnloom.testing.contracts.facts import CODEC

async def main():
    async for each in SqliteStore(sys.argv[1], CODEC).migrator.migrate():
        os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""


@pytest.mark.doors
async def test_a_kill_in_between_is_repaired_by_another_call(tmp_path: Path) -> None:
    path = tmp_path / "turnloom.db"
    await earlier_file(path, 11)
    for version in (12, 13):
        await anyio.run_process([sys.executable, "-c", KILLED, str(path)], check=False)
        assert version_of(path) == version
    assert await migrated(path) == [14, 15, 16]
    async with aclosing(SqliteStore(path, CODEC)) as store:
        await check_filters(store.log)
