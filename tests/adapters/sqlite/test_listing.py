"""What lists runs reads those that it lists, however many there are."""

import sqlite3
from collections import defaultdict
from collections.abc import AsyncGenerator
from contextlib import aclosing, closing
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from turnloom import Loom, artifact_type
from turnloom.adapters.sqlite import SqliteStore, queries
from turnloom.adapters.sqlite.listing import chosen_ends
from turnloom.errors import UnknownRun
from turnloom.log.spec import RunFilter
from turnloom.runtime.logic import codec
from turnloom.testing.contracts.facts import TENANT


@artifact_type
class Note(BaseModel):
    text: str


@pytest.fixture
async def path(tmp_path: Path) -> AsyncGenerator[Path, None]:
    """A store in which 60 runs ended."""
    path = tmp_path / "turnloom.db"
    async with Loom(store=path) as app:
        board = app.board()
        await board.publish_many([Note(text=str(n)) for n in range(60)])
        await board.run_until_idle()
    yield path


def plan_of(path: Path, query: str, values: Any) -> str:
    with closing(sqlite3.connect(path)) as file:
        rows = file.execute(f"EXPLAIN QUERY PLAN {query}", values).fetchall()
    return "\n".join(row[-1] for row in rows)


def of(*statuses: str) -> RunFilter:
    return RunFilter(frozenset(statuses))


CHOICES = {
    "all": (of(), False, ["runs_of"]),
    "without an end": (of(), True, ["unfinished_runs"]),
    "one status": (of("failed"), False, ["rare_runs"]),
    "two": (of("waiting", "cancelled"), False, ["rare_runs"] * 2),
    "three": (of("collecting", "unfinished", "failed"), False, ["rare_runs"] * 2),
    "unfinished": (of("unfinished"), False, ["unfinished_runs"]),
}


@pytest.mark.parametrize("choice", CHOICES)
async def test_lists_are_read_by_their_indexes(path: Path, choice: str) -> None:
    which, unfinished, indexes = CHOICES[choice]
    plan = plan_of(path, chosen_ends(which, unfinished=unfinished), defaultdict(int))
    for index in indexes:
        assert plan.count(f"INDEX {index} (tenant=? AND") == indexes.count(index)
    assert "SCAN runs" not in plan and "SCAN r" not in plan


async def test_ids_are_looked_for_by_their_index(path: Path) -> None:
    named = plan_of(path, queries.RUNS_NAMED, (TENANT, "ab", 10))
    assert "(tenant=? AND id>? AND id<?)" in named
    assert "TEMP B-TREE" not in named and "SCAN" not in named


async def test_what_asks_for_some_runs_reads_no_others(path: Path) -> None:
    async with aclosing(SqliteStore(path, codec())) as store:
        listed, runs = list[str](), store.log.runs

        async def counting(*asked: object, **more: object) -> object:
            found = await runs(*asked, **more)
            listed.extend(first.run for first, _ in found)
            return found

        store.log.runs = counting
        async with Loom(store=store) as app:
            await app.board().resume()
            assert await app.runs(status="failed") == await app.runs(user="nobody") == []
            assert listed == []
            assert len(await app.runs(5)) == len(listed) == 5


async def test_pages_of_runs(path: Path) -> None:
    async with Loom(store=path) as app:
        whole = [each.run for each in await app.runs()]
        assert len(whole) == 60
        pages = list[str]()
        while page := await app.runs(25, before=pages[-1] if pages else None):
            pages += [each.run for each in page]
        assert pages == whole
        assert await app.runs(unfinished=True) == []
        with pytest.raises(UnknownRun):
            await app.runs(before="unknown")
        assert await app.history.named(whole[7][:20]) == [whole[7]]
