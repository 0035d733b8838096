"""Artifacts in a SQLite file."""

import os
import sqlite3
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import anyio
import pytest

from tests.adapters.sqlite.test_contracts import two_stores
from tests.support.raising import raising
from turnloom.adapters.sqlite import SqliteStore
from turnloom.board.ports import ArtifactStore
from turnloom.board.service import rebuild
from turnloom.board.spec import FilterConfig, Reader, Tenant
from turnloom.errors import StoreUnavailable, UsageError
from turnloom.log.ports import EventLog
from turnloom.testing.contracts import (
    CODEC,
    ArtifactStoreContract,
    FollowingContract,
    event,
    events,
)
from turnloom.testing.contracts.artifacts.samples import (
    ANN,
    BOB,
    LATER,
    NOON,
    SECOND,
    artifact,
    consumption,
    ids,
    series,
)
from turnloom.testing.contracts.artifacts.storing import answers, batch, consumed, published
from turnloom.testing.contracts.facts import TENANT, key

EVERYTHING = FilterConfig()


class TestArtifacts(ArtifactStoreContract):
    @asynccontextmanager
    async def fresh(self) -> AsyncGenerator[ArtifactStore, None]:
        async with two_stores() as (store, _):
            yield store.artifacts


class _Across:
    """Writes through one store and reads through another, as two processes would."""

    def __init__(self, writer: ArtifactStore, reader: ArtifactStore) -> None:
        self.follows_log = writer.follows_log
        self.put = writer.put
        self.consume = writer.consume
        self.find = reader.find
        self.get = reader.get
        self.query = reader.query
        self.newest = reader.newest
        self.summary = reader.summary
        self.upcoming = reader.upcoming
        self.aclose = reader.aclose


class TestFollowing(FollowingContract):
    @asynccontextmanager
    async def fresh(self) -> AsyncGenerator[tuple[EventLog, ArtifactStore], None]:
        async with two_stores() as (store, _):
            yield store.log, store.artifacts


class TestFollowingAcrossStores(FollowingContract):
    """One process appends, and another reads the board."""

    @asynccontextmanager
    async def fresh(self) -> AsyncGenerator[tuple[EventLog, ArtifactStore], None]:
        async with two_stores() as (store, other):
            yield store.log, other.artifacts


class TestArtifactsAcrossStores(ArtifactStoreContract):
    @asynccontextmanager
    async def fresh(self) -> AsyncGenerator[ArtifactStore, None]:
        async with two_stores() as (store, other):
            yield _Across(store.artifacts, other.artifacts)


def change(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as file, file:
        for statement in statements:
            file.execute(statement)


async def test_artifacts_stay_in_the_file_of_the_log(tmp_path: Path) -> None:
    path = tmp_path / "turnloom.db"
    for position in range(2):
        store = SqliteStore(path, CODEC)
        await store.log.append(key("a"), [event("a", position + 1)], position)
        await store.artifacts.put(TENANT, [artifact(str(position))])
        assert len(await store.log.read(key("a"))) == position + 1
        assert await ids(store.artifacts) == ["0", "1"][: position + 1]
        await store.aclose()
    assert os.listdir(tmp_path) == ["turnloom.db"]


async def test_a_file_of_an_earlier_release_is_refused(tmp_path: Path) -> None:
    """What it holds says of no run and no artifact whose it is."""
    path = tmp_path / "turnloom.db"
    store = SqliteStore(path, CODEC)
    await store.log.append(key("a"), events("a", 3), 0)
    await store.aclose()
    change(path, "PRAGMA user_version = 10")
    store = SqliteStore(path, CODEC)
    with pytest.raises(StoreUnavailable):
        await store.log.read(key("a"))
    await store.aclose()
    with closing(sqlite3.connect(path)) as file:
        assert file.execute("PRAGMA user_version").fetchone() == (10,)


async def test_a_board_elsewhere_is_left_to_others(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "turnloom.db", CODEC, board=False)
    await store.log.append(key("r"), batch("r", published("a")), 0)
    assert not store.artifacts.follows_log and await ids(store.artifacts) == []
    await store.aclose()


async def test_a_lost_index_is_made_again(tmp_path: Path) -> None:
    path = tmp_path / "turnloom.db"
    store = SqliteStore(path, CODEC)
    for n in range(3):
        at = NOON - n * SECOND
        facts = (published(f"{n}", created_at=at), published(f"{n}.", created_at=at, tags={"t"}))
        await store.log.append(key(f"r{n}"), batch(f"r{n}", *facts, consumed("0", f"{n}")), 0)
    before = await answers(store.artifacts)
    change(path, *(f"DELETE FROM {table}" for table in ("artifacts", "terms", "consumptions")))
    assert await ids(store.artifacts) == []
    await rebuild(store.log, store.artifacts, TENANT)
    assert await answers(store.artifacts) == before
    await store.aclose()


@pytest.mark.parametrize("corrupt", ["", '{"kind":"everyone"}', '{"kind":"tenant"}', "public"])
async def test_a_damaged_visibility_shows_nothing(tmp_path: Path, corrupt: str) -> None:
    path = tmp_path / "turnloom.db"
    store = SqliteStore(path, CODEC)
    await store.artifacts.put(TENANT, series(5))
    change(path, f"UPDATE artifacts SET visibility = '{corrupt}' WHERE id IN ('1', '3')")
    assert await ids(store.artifacts) == ["0", "2", "4"]
    assert await ids(store.artifacts, limit=2) == ["0", "2"]
    assert await store.artifacts.get("1", ANN, LATER) is None
    await store.aclose()


async def test_the_index_alone_opens_nothing(tmp_path: Path) -> None:
    """An entry in everybody's scope does not show what the artifact itself says is somebody's."""
    path = tmp_path / "turnloom.db"
    store = SqliteStore(path, CODEC)
    hidden = '{"kind":"private","agents":["bob"]}'
    await store.artifacts.put(TENANT, [artifact("a"), artifact("b", visibility=Tenant("acme"))])
    change(path, f"UPDATE artifacts SET visibility = '{hidden}'")
    assert await ids(store.artifacts, ANN) == []
    page = await store.artifacts.query(EVERYTHING, BOB, LATER, count=True)
    assert [item.id for item in page.items] == ["a", "b"] and page.total == 2


async def test_a_term_of_another_tenant_opens_nothing(tmp_path: Path) -> None:
    """Two terms may be the same number: what another tenant has under it is not read."""
    path = tmp_path / "turnloom.db"
    store = SqliteStore(path, CODEC)
    await store.artifacts.put("globex", [artifact("a")])
    await store.artifacts.put(TENANT, [artifact("b")])
    every = "SELECT o.term, a.at, a.n, a.opens FROM terms o, artifacts a"
    change(path, f"INSERT OR IGNORE INTO terms {every}")
    assert await ids(store.artifacts, ANN) == ["b"]
    assert (await store.artifacts.summary(EVERYTHING, ANN, LATER)).total == 1
    await store.aclose()


async def test_a_reader_that_stops_waiting_stops_the_reading(tmp_path: Path) -> None:
    async with two_stores() as (store, _):
        await store.artifacts.put(TENANT, series(2000))
        rare = FilterConfig(where=[("id", "eq", "nobody")])
        for delay in (0, 0.001, 0.005, 0.02):
            with anyio.move_on_after(delay):
                async with anyio.create_task_group() as tasks:
                    for _ in range(5):
                        tasks.start_soon(store.artifacts.query, rare, ANN, LATER)
            assert await ids(store.artifacts, limit=1) == ["0"]


async def test_a_closed_store_refuses(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "turnloom.db", CODEC)
    await store.artifacts.put(TENANT, [artifact("a")])
    assert await ids(store.artifacts) == ["a"]
    await store.aclose()
    for call in (
        store.artifacts.put(TENANT, [artifact("a")]),
        store.artifacts.consume(TENANT, [consumption("a")]),
        store.artifacts.get("a", Reader(), NOON),
        store.artifacts.query(EVERYTHING, Reader(), NOON),
        store.artifacts.summary(EVERYTHING, Reader(), NOON),
        store.artifacts.upcoming(TENANT, NOON, 1),
    ):
        with pytest.raises(UsageError):
            await call


async def test_a_file_that_is_no_database_is_said_so(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("these are my notes\n" * 500)
    store = SqliteStore(path, CODEC)
    with raising(StoreUnavailable, "notes.txt"):
        await store.artifacts.query(EVERYTHING, ANN, NOON)
    await store.aclose()


async def test_data_that_sqlite_cannot_read_is_not_counted(tmp_path: Path) -> None:
    path = tmp_path / "turnloom.db"
    store = SqliteStore(path, CODEC)
    await store.artifacts.put(TENANT, series(4, tags={"t"}))
    change(
        path, *(f"UPDATE artifacts SET data = '{d}' WHERE id = '{n}'" for n, d in enumerate("x5"))
    )
    counted = await store.artifacts.summary(EVERYTHING, ANN, LATER)
    assert (counted.total, counted.by_tag) == (2, {"t": 2})
    await store.aclose()
