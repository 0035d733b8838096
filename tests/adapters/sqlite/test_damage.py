"""Rows that are missing or changed in the file: noticed when read, by the run concerned."""

import sqlite3
from collections.abc import AsyncGenerator
from contextlib import aclosing, closing
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict

from turnloom import Flow, LogDamaged, Loom, StoreUnavailable, UnknownRun
from turnloom.adapters.sqlite import SqliteStore
from turnloom.runtime.spec import VerifiedRun
from turnloom.testing.contracts import CODEC, events
from turnloom.testing.contracts.facts import TENANT, key


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs.db"


@pytest.fixture
async def stored(path: Path) -> AsyncGenerator[None, None]:
    """Two runs of three batches with two events each."""
    async with aclosing(SqliteStore(path, CODEC)) as store:
        for run in ("a", "b"):
            for position in (0, 2, 4):
                await store.log.append(key(run), events(run, 2, position), position)
            await store.snapshots.save(key(run), 5, b"five")
    yield


def change(path: Path, statement: str, *values: Any) -> None:
    with closing(sqlite3.connect(path)) as file, file:
        assert file.execute(statement, values).rowcount


def drop(path: Path, first: int) -> None:
    """Take the batch of run `a` out that begins at a position."""
    change(path, "DELETE FROM batches WHERE pos = (1 << 32) + ?", first)


async def verified(store: SqliteStore) -> list[VerifiedRun]:
    return [run async for run in store.verifier.verify(TENANT)]


@pytest.mark.parametrize("first", [1, 3])
async def test_a_gap_is_noticed_by_whoever_reads(first: int, path: Path, stored: None) -> None:
    drop(path, first)
    async with aclosing(SqliteStore(path, CODEC)) as store:
        with pytest.raises(LogDamaged) as raised:
            await store.log.read(key("a"))
        assert f"events {first} to {first + 1}" in str(raised.value) and "'a'" in str(raised.value)
        with pytest.raises(LogDamaged):
            await store.log.read(key("a"), first)
        with pytest.raises(LogDamaged):
            async for _ in store.log.subscribe(key("a")):
                pass
        assert len(await store.log.read(key("a"), 4)) == 2
        assert len(await store.log.read(key("b"))) == 6
        assert await store.log.ends(key("b"))
        assert {each[0].run for each in await store.log.runs(TENANT, 10)} >= {"b"}
        sound = VerifiedRun("b", 6)
        broken = VerifiedRun("a", 4, (f"events {first} to {first + 1} are missing",))
        assert await verified(store) == [broken, sound]


async def test_a_run_without_its_beginning_says_so(path: Path, stored: None) -> None:
    drop(path, 1)
    async with aclosing(SqliteStore(path, CODEC)) as store:
        with pytest.raises(LogDamaged):
            await store.log.ends(key("a"))
        drop(path, 3)
        drop(path, 5)
        for deed in (
            store.log.ends(key("a")),
            store.log.append(key("a"), events("a", 1), 0),
        ):
            with pytest.raises(LogDamaged):
                await deed
        assert (await verified(store))[0].problems == ("events 1 to 6 are missing",)


async def test_an_end_that_was_known_is_missed(path: Path, stored: None) -> None:
    drop(path, 5)
    async with aclosing(SqliteStore(path, CODEC)) as store:
        assert (await verified(store))[0].problems == ("events 5 to 6 are missing",)


async def test_a_batch_that_lost_a_line_is_noticed(path: Path, stored: None) -> None:
    line = "substr(data, 1, instr(data, char(10)) - 1)"
    change(path, f"UPDATE batches SET data = CAST({line} AS BLOB) WHERE pos = (1 << 32) + 3")
    async with aclosing(SqliteStore(path, CODEC)) as store:
        with pytest.raises(LogDamaged):
            await store.log.read(key("a"))
        assert (await verified(store))[0].problems == ("events 3 to 4 are not as stored",)


async def test_what_was_changed_is_found(path: Path, stored: None) -> None:
    text = "CAST(replace(CAST(data AS TEXT), 'note 3', 'none 3') AS BLOB)"
    change(path, f"UPDATE batches SET data = {text} WHERE pos = (1 << 32) + 3")
    text = "CAST(replace(CAST(data AS TEXT), 'test.noted', 'test.never') AS BLOB)"
    change(path, f"UPDATE batches SET data = {text} WHERE pos = (2 << 32) + 5")
    async with aclosing(SqliteStore(path, CODEC)) as store:
        ours, theirs = await verified(store)
    assert ours.problems == ("events 3 to 4 are not as stored",)
    assert len(theirs.problems) == 3
    assert "'test.never'" in theirs.problems[1]


async def test_several_writers_keep_one_chain(path: Path) -> None:
    async with aclosing(SqliteStore(path, CODEC)) as one, aclosing(SqliteStore(path, CODEC)) as two:
        for position in range(6):
            writer = (one, one, two)[position % 3]
            await writer.log.append(key("a"), events("a", 1, position), position)
        assert await verified(one) == [VerifiedRun("a", 6)]


async def test_a_damaged_file_is_told(path: Path, stored: None) -> None:
    with path.open("r+b") as file:
        file.seek(4096 * 3)
        file.write(b"\xff" * 4096 * 2)
    async with aclosing(SqliteStore(path, CODEC)) as store:
        with pytest.raises(StoreUnavailable):
            await verified(store)


class State(BaseModel):
    model_config = ConfigDict(frozen=True)

    n: int = 0


def step(state: State) -> dict[str, int]:
    return {"n": state.n + 1}


STEPS = Flow("steps", State).start_with(step).await_approval("ann", name="ok")


async def test_a_run_that_lost_events_is_not_continued(path: Path) -> None:
    async with Loom(store=path) as app:
        damaged, sound = [(await app.run(STEPS)).run_id for _ in range(2)]
    drop(path, 1)
    async with Loom(store=path) as app:
        app.register_flow(STEPS)
        assert {each.run: each.status for each in await app.runs()}[damaged] == "broken"
        with pytest.raises(LogDamaged):
            await app.resume(damaged)
        with pytest.raises(LogDamaged):
            await app.history.events(damaged)
        assert await (await app.resume(sound)).cancel()
        found = {each.run: bool(each.problems) async for each in app.history.verify()}
        assert found == {damaged: True, sound: False}
        with pytest.raises(UnknownRun):
            [each async for each in app.history.verify("nosuch")]
