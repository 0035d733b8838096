"""`turnloom store prune`, and what it is in Python."""

import asyncio
import json
import os
import sys
from asyncio.subprocess import PIPE
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from pydantic import BaseModel

from tests.cli.conftest import Call
from tests.support.tables import tables_of
from turnloom import Loom, artifact_type
from turnloom.adapters.memory import MemoryStore
from turnloom.errors import UsageError
from turnloom.runtime.logic import codec

LATER = timedelta(days=40)
PRUNING = """
import asyncio, sys
from turnloom import Loom

async def main():
    async with Loom(store=sys.argv[1]) as app:
        async for each in app.history.prune("0s"):
            print(each.run, flush=True)

asyncio.run(main())
"""


@artifact_type
class Note(BaseModel):
    text: str


async def fill(store: Path, runs: int, *, correlation: str | None = None) -> None:
    async with Loom(store=store) as app:
        board = app.board()
        notes = [Note(text="x" * 2000) for _ in range(runs)]
        await board.publish_many(notes, correlation_id=correlation)
        await board.run_until_idle()


def rows(store: Path) -> dict[str, int]:
    with tables_of(store) as tables:
        return {**tables.counts(), "removals": 0}  # the record of this stays


def test_the_command(turnloom: Call, chat: str) -> None:
    for _ in range(2):
        turnloom("run", chat)
    assert "Runs: 0," in turnloom("store", "prune", "--older-than", "1h").out
    prune = ("store", "prune", "--older-than", "0s")
    assert "Runs: 0," in turnloom(*prune, "--status", "failed").out
    would = json.loads(turnloom(*prune, "--dry-run", "--json").out)
    assert (would["runs"], would["artifacts"], would["dry_run"]) == (2, 0, True)
    assert len(json.loads(turnloom("runs", "--json").out)) == 2
    done = json.loads(turnloom(*prune, "--json").out)
    assert {**would, "dry_run": False} == done
    assert json.loads(turnloom("runs", "--json").out) == []
    (record,) = json.loads(turnloom("store", "removals", "--json").out)
    assert (record["by"], record["runs"], record["events"]) == ("local", 2, done["events"])
    for wrong in (
        ("store", "prune"),
        ("store", "prune", "--older-than", "1d", "--before", "2026-01-31"),
        ("store", "prune", "--before", "soon"),
        ("store", "verify", "--before", "2026-01-31"),
        ("store", "prune", "--older-than", "soon"),
        ("store", "prune", "some-run", "--older-than", "1d"),
        ("store", "verify", "--dry-run"),
    ):
        turnloom(*wrong, code=2)


def test_runs_that_ended_before_a_time(turnloom: Call, chat: str) -> None:
    turnloom("run", chat)
    assert "Runs: 0," in turnloom("store", "prune", "--before", "2001-01-31").out
    assert "Runs: 1," in turnloom("store", "prune", "--before", "9000-01-31T12:00:00Z").out
    assert json.loads(turnloom("runs", "--json").out) == []


async def test_nothing_of_a_run_is_left(tmp_path: Path) -> None:
    store = tmp_path / "turnloom.db"
    await fill(store, 1)
    async with Loom(store=store) as app:
        assert [each async for each in app.history.prune("0s")]
    empty = rows(store)
    await fill(store, 80)
    async with Loom(store=store) as app:
        assert not [each async for each in app.history.prune(LATER)]
        pruned = [each async for each in app.history.prune(timedelta())]
        assert {each.artifacts for each in pruned} == {1} and len(pruned) == 80
        assert await app.board().query_artifacts() == ((), None)
    assert rows(store) == empty


async def test_a_file_shrinks(tmp_path: Path) -> None:
    store = tmp_path / "turnloom.db"
    sizes = list[int]()
    for runs in (1, 80):
        await fill(store, runs)
        full = os.stat(store).st_size
        async with Loom(store=store) as app:
            assert [each async for each in app.history.prune("0s")]
        sizes += [full, os.stat(store).st_size]
    _, least, full, shrunk = sizes
    assert full > 3 * least and shrunk < 2 * least


async def test_runs_of_a_named_correlation_go_too_and_their_ids_are_not_used_again(
    tmp_path: Path,
) -> None:
    store, ids = tmp_path / "turnloom.db", list[str]()
    for _ in range(3):
        await fill(store, 1, correlation="order-1")
        async with Loom(store=store) as app:
            ids += [each.run for each in await app.runs() if each.run not in ids]
            left = [each.run for each in await app.runs()]
            assert len([each async for each in app.history.prune("0s")]) == len(left) == 1
            assert await app.runs() == []
    assert len(set(ids)) == 3


async def test_what_cannot_be_pruned_is_refused(tmp_path: Path) -> None:
    async with Loom(store="memory") as app:
        for wrong in (None, datetime(2026, 1, 31)):  # noqa: DTZ001 - refused for that
            with pytest.raises(UsageError, match="before"):
                [each async for each in app.history.prune(before=wrong)]
    elsewhere = MemoryStore(codec(), board=False).artifacts
    async with Loom(store=tmp_path / "a.db", artifacts=elsewhere) as app:
        with pytest.raises(UsageError, match="another place"):
            [each async for each in app.history.prune("0s")]


async def test_a_kill_leaves_each_run_whole_beside_one_that_publishes(tmp_path: Path) -> None:
    store = tmp_path / "turnloom.db"
    await fill(store, 80)
    async with Loom(store=store) as app:
        board = app.board()
        child = await asyncio.create_subprocess_exec(
            sys.executable, "-c", PRUNING, str(store), stdout=PIPE
        )
        assert child.stdout is not None
        assert await child.stdout.readline()
        await board.publish_many([Note(text="beside") for _ in range(20)])
        await board.run_until_idle()
        child.kill()
        await child.wait()
        verified = [each async for each in app.history.verify()]
        assert not [each for each in verified if each.problems]
        left = [each.run for each in await app.runs()]
        items, _ = await board.query_artifacts()
        there = [each.run for each in items]
        assert sorted(there) == sorted(left) and len(left) >= 20
        assert len([each async for each in app.history.prune("0s")]) == len(left)
        assert await app.runs() == []
