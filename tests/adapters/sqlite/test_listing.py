"""What lists runs reads those that it lists, however many there are."""

import sqlite3
from collections.abc import AsyncGenerator
from contextlib import aclosing, closing
from pathlib import Path

import pytest
from pydantic import BaseModel

from turnloom import Loom, artifact_type
from turnloom.adapters.sqlite import SqliteStore, queries
from turnloom.errors import UnknownRun
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


def plan_of(path: Path, query: str, *values: object) -> str:
    with closing(sqlite3.connect(path)) as file:
        rows = file.execute(f"EXPLAIN QUERY PLAN {query}", values).fetchall()
    return "\n".join(row[-1] for row in rows)


async def test_lists_are_read_by_their_indexes(path: Path) -> None:
    unfinished = plan_of(path, queries.UNFINISHED_BEFORE, TENANT, 2**62, 10)
    assert "USING INDEX unfinished_runs" in unfinished
    newest = plan_of(path, queries.ENDS_BEFORE, TENANT, 2**62, 10)
    assert "USING INDEX runs_of" in newest
    named = plan_of(path, queries.RUNS_NAMED, TENANT, "ab", 10)
    assert "(tenant=? AND id>? AND id<?)" in named
    for plan in (unfinished, newest, named):
        assert "TEMP B-TREE" not in plan
        assert "SCAN" not in plan


async def test_resuming_a_board_reads_no_run_that_ended(path: Path) -> None:
    async with aclosing(SqliteStore(path, codec())) as store:
        listed, runs = list[str](), store.log.runs

        async def counting(*asked: object, **more: object) -> object:
            found = await runs(*asked, **more)
            listed.extend(first.run for first, _ in found)
            return found

        store.log.runs = counting
        async with Loom(store=store) as app:
            await app.board().resume()
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
