"""What file a store opens, when, and which it leaves alone."""

import os
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.raising import raising
from turnloom.adapters.sqlite import SqliteStore, queries
from turnloom.errors import StoreUnavailable
from turnloom.testing.contracts import CODEC, event, events
from turnloom.testing.contracts.facts import key


async def refusal(path: Path) -> str:
    """Why a store does not open the file, for writing as for reading."""
    store = SqliteStore(path, CODEC)
    with pytest.raises(StoreUnavailable) as writing:
        await store.log.append(key("a"), events("a", 1), 0)
    with pytest.raises(StoreUnavailable) as reading:
        await store.log.read(key("a"))
    with pytest.raises(StoreUnavailable):
        store.inbox.arrivals()
    await store.aclose()
    assert str(reading.value) == str(writing.value)
    assert str(path) in str(writing.value)
    return str(writing.value)


async def test_nothing_is_opened_before_the_first_use(tmp_path: Path) -> None:
    threads = threading.active_count()
    store = SqliteStore(tmp_path / "new" / "turnloom.db", CODEC)
    assert not os.listdir(tmp_path)
    await store.aclose()
    assert not os.listdir(tmp_path)
    assert threading.active_count() <= threads  # one of a test before may have ended


async def test_no_thread_is_started_for_short_work(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "turnloom.db", CODEC)
    threads = threading.active_count()
    await store.log.append(key("a"), events("a", 7), 0)
    await store.log.read(key("a"))
    async with store.claims.claim(key("a")):
        assert threading.active_count() <= threads
    await store.aclose()


async def test_the_file_tells_what_it_is_and_people_can_read_it(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "turnloom.db"
    store = SqliteStore(path, CODEC)
    await store.log.append(key("r1"), events("r1", 2), 0)
    await store.aclose()
    assert os.listdir(path.parent) == ["turnloom.db"]
    with closing(sqlite3.connect(path)) as database:
        assert database.execute("PRAGMA application_id").fetchone() == (queries.APPLICATION,)
        assert database.execute("PRAGMA user_version").fetchone() == (queries.VERSION,)
        assert database.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        rows = database.execute("SELECT run, seq, kind, actor, data FROM log").fetchall()
    assert rows[1] == ("r1", 2, "test.noted", "tester", '{"text":"note 2"}')


@pytest.mark.parametrize(
    "name", ["it's a file", "file:turnloom.db?mode=ro", ":memory:", "läuft 走る.db"]
)
async def test_odd_file_names(tmp_path: Path, name: str) -> None:
    for position in range(2):
        store = SqliteStore(tmp_path / name, CODEC)
        await store.log.append(key("a"), [event("a", position + 1)], position)
        await store.aclose()
    assert (tmp_path / name).is_file()


async def test_an_empty_file_is_taken(tmp_path: Path) -> None:
    path = tmp_path / "turnloom.db"
    path.touch()
    store = SqliteStore(path, CODEC)
    await store.log.append(key("a"), events("a", 1), 0)
    await store.aclose()


async def test_a_file_that_is_no_database_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("these are my notes\n" * 500)
    before = path.read_bytes()
    await refusal(path)
    assert path.read_bytes() == before


async def test_a_database_of_another_program_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "theirs.db"
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE theirs (x)")
    before = path.read_bytes()
    await refusal(path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["theirs.db"]


async def test_a_later_schema_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "turnloom.db"
    store = SqliteStore(path, CODEC)
    await store.log.append(key("a"), events("a", 1), 0)
    await store.aclose()
    with closing(sqlite3.connect(path)) as database:
        database.execute(f"PRAGMA user_version = {queries.VERSION + 1}")
    assert str(queries.VERSION + 1) in await refusal(path)


async def test_a_folder_is_refused(tmp_path: Path) -> None:
    await refusal(tmp_path)


async def test_a_place_that_cannot_be_is_refused_until_it_can(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.touch()
    store = SqliteStore(blocked / "turnloom.db", CODEC)
    with raising(StoreUnavailable, str(blocked)):
        await store.log.append(key("a"), events("a", 1), 0)
    blocked.unlink()
    await store.log.append(key("a"), events("a", 1), 0)
    assert len(await store.log.read(key("a"))) == 1
    await store.aclose()


async def test_a_damaged_file_says_so(tmp_path: Path) -> None:
    path = tmp_path / "turnloom.db"
    store = SqliteStore(path, CODEC)
    for position in range(0, 2000, 500):
        await store.log.append(key("a"), events("a", 500, after=position), position)
    await store.aclose()
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(20 * 4096)
        file.write(b"\xff" * (size - 24 * 4096))
    store = SqliteStore(path, CODEC)
    with raising(StoreUnavailable, str(path), ".recover"):
        await store.log.read(key("a"))
    await store.aclose()
