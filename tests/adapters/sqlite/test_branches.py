"""Branches in a SQLite file: damage, kills, and what is removed."""

import sqlite3
from collections.abc import AsyncGenerator
from contextlib import aclosing, closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from turnloom import LogDamaged, Loom, UsageError
from turnloom.adapters.sqlite import SqliteStore
from turnloom.log.events import RunFinished, RunPaused
from turnloom.log.ports import EventLog
from turnloom.log.service import branching
from turnloom.ports import codec
from turnloom.testing import FakeClock
from turnloom.testing.contracts import CODEC, event, events
from turnloom.testing.contracts.facts import BEGINNING, TENANT, key, started
from turnloom.testing.crashes import CrashingLog, Fuse, Killed


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "turnloom.db"


@pytest.fixture
async def stored(path: Path) -> AsyncGenerator[None, None]:
    """Run 1 with three batches of two events, and run 2, its branch after the second one."""
    async with aclosing(SqliteStore(path, CODEC)) as store:
        for position in (0, 2, 4):
            await store.log.append(key("a"), events("a", 2, position), position)
        await store.log.branch(key("b"), "a", 4, events("b", 2, after=4))
        await store.log.append(key("b"), events("b", 1, after=6), 6)
    yield


def drop(path: Path, run: int, first: int) -> None:
    """Remove the batch of a run that begins at a position."""
    with closing(sqlite3.connect(path)) as file, file:
        assert file.execute("DELETE FROM batches WHERE pos = ?", ((run << 32) + first,)).rowcount


@pytest.mark.parametrize(("run", "first", "damaged"), [(1, 1, "ab"), (1, 3, "ab"), (2, 5, "b")])
async def test_a_gap_damages_the_runs_that_hold_it(
    path: Path, stored: None, run: int, first: int, damaged: str
) -> None:
    drop(path, run, first)
    async with aclosing(SqliteStore(path, CODEC)) as store:
        found = [each async for each in store.verifier.verify(TENANT)]
        assert "".join(each.run for each in found if each.problems) == damaged
        for each in damaged:
            with pytest.raises(LogDamaged):
                await store.log.read(key(each))
        for each in {*"ab"} - {*damaged}:
            assert await store.log.read(key(each))
        if (run, first) == (1, 3):
            with pytest.raises(LogDamaged):
                await store.log.batch_end(key("b"), 4)


async def test_a_changed_event_is_found_in_both_runs(path: Path, stored: None) -> None:
    with closing(sqlite3.connect(path)) as file, file:
        file.execute(
            "UPDATE batches SET data = replace(CAST(data AS TEXT), 'note 1', 'note 9') "
            "WHERE pos = (1 << 32) + 1"
        )
    async with aclosing(SqliteStore(path, CODEC)) as store:
        found = [each async for each in store.verifier.verify(TENANT)]
        assert [each.problems for each in found] == [("events 1 to 2 are not as stored",)] * 2


@pytest.mark.parametrize("points", [0, 1])
async def test_a_killed_branch_is_there_or_not(path: Path, stored: None, points: int) -> None:
    own = events("c", 2, after=7)
    async with aclosing(SqliteStore(path, CODEC)) as store:
        with pytest.raises(Killed):
            await CrashingLog(store.log, Fuse(points)).branch(key("c"), "b", 7, own)
        assert len(await store.log.read(key("c"))) == 9 * points
    async with aclosing(SqliteStore(path, CODEC)) as store:
        assert list(await store.log.branch(key("c"), "b", 7, own)) == own
        assert len(await store.log.read(key("c"))) == 9


async def test_ids_that_were_kept_count_up_to_the_cut(path: Path, stored: None) -> None:
    """The stored ids of a long run reach further than a branch, or less far."""
    async with aclosing(SqliteStore(path, CODEC)) as store:
        for run, position in (("a", 6), ("b", 7)):
            await store.log.append(key(run), events(run, 1, after=position), position)
            await store.snapshots.save(key(run), position + 1, b"state")
    async with aclosing(SqliteStore(path, CODEC)) as store:
        await store.log.branch(key("c"), "a", 2, [event("c", 3, id="a/5")])
        await store.log.branch(key("d"), "b", 8, [event("d", 9, id="a/6")])
        for run, position in (("c", 3), ("d", 9)):
            with pytest.raises(Exception, match="a/2"):
                await store.log.append(key(run), [event(run, position + 1, id="a/2")], position)


def test_a_log_that_cannot_branch_is_refused() -> None:
    plain: Any = object()
    with pytest.raises(UsageError, match="A fork"):
        branching(plain, "A fork")


async def test_pruning_removes_a_branch_and_then_its_origin(path: Path) -> None:
    """The origin ends after its branch, and so would be removed first."""
    async with aclosing(SqliteStore(path, codec())) as store:
        log: EventLog = store.log
        begun = started("a", "shop", "ann", 0)
        await log.append(key("a", "local"), [begun], 0)
        own = [event("b", 2, RunFinished())]
        await store.log.branch(key("b", "local"), "a", 1, own)
        await log.append(
            key("a", "local"), [event("a", 2, RunPaused("")), event("a", 3, RunFinished())], 1
        )
        clock = FakeClock(BEGINNING + timedelta(days=9))
        async with Loom(store=store, clock=clock) as app:
            for dry_run in (True, False):
                runs = app.history.prune("1d", dry_run=dry_run)
                assert [each.run async for each in runs] == ["b", "a"]
            assert await app.runs() == []


async def test_branches_are_listed_under_their_own_id(path: Path) -> None:
    async with aclosing(SqliteStore(path, codec())) as store:
        await store.log.append(key("a", "local"), [started("a", "shop", "ann", 0)], 0)
        own = [event("b", 2, RunFinished())]
        await store.log.branch(key("b", "local"), "a", 1, own)
        async with Loom(store=store) as app:
            found = await app.runs(status="finished", user="ann")
            assert [(each.run, each.workflow, each.events) for each in found] == [("b", "shop", 2)]
            assert [each.run for each in await app.runs(before="b")] == ["a"]
            assert (await app.explain.timeline("b")).run == "b"
