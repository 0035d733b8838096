"""Documents in SQLite files: the suite, and files that are locked, damaged, strange."""

import os
import sqlite3
import tempfile
from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, closing, contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio import to_thread

from tests.support.documents import into_sqlite as add
from tests.support.raising import raising
from turnloom.adapters.sqlite import SqliteDocuments, lookups
from turnloom.errors import DocumentsUnavailable, UsageError
from turnloom.testing.contracts import DocumentStoreContract
from turnloom.testing.contracts.documents import Put, lookup
from turnloom.variables.ports import DocumentStore, Lookup

# Seconds after which a lookup gives up, and in which nothing here takes longer.
TIMEOUT = 0.3
PATIENCE = 60.0


@contextmanager
def opened(folder: Path, name: str = "documents") -> Generator[sqlite3.Connection, None, None]:
    with closing(sqlite3.connect(folder / f"{name}.db")) as connection, connection:
        yield connection


class TestDocuments(DocumentStoreContract):
    @asynccontextmanager
    async def fresh(self) -> AsyncGenerator[tuple[DocumentStore, Put], None]:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)

            async def put(
                database: str | None, table: str, documents: Sequence[Mapping[str, Any]]
            ) -> None:
                await to_thread.run_sync(add, folder, database, table, documents)

            store = SqliteDocuments(folder)
            yield store, put
            await store.aclose()


async def complaint(store: SqliteDocuments) -> str:
    """What a lookup is refused with, in time."""
    with anyio.fail_after(PATIENCE), pytest.raises(DocumentsUnavailable) as raised:
        await store.newest(lookup())
    return str(raised.value)


def plan(folder: Path, wanted: Lookup) -> str:
    statement, values = lookups.newest(wanted)
    with opened(folder) as connection:
        rows = connection.execute(f"EXPLAIN QUERY PLAN {statement}", values)
        return "\n".join(row[3] for row in rows)


@pytest.mark.parametrize("key", ["key", "a.b", "größe.it's 50%"])
async def test_an_indexed_lookup_reads_no_other_document(tmp_path: Path, key: str) -> None:
    add(tmp_path, None, "users", [{"key": str(n)} for n in range(10)])
    store = SqliteDocuments(tmp_path)
    assert plan(tmp_path, lookup(key=key)) == "SCAN users"
    await store.index(lookup(key=key))
    assert plan(tmp_path, lookup(key=key)).startswith("SEARCH users USING INDEX turnloom_")
    assert "TEMP B-TREE" not in plan(tmp_path, lookup(key=key))


async def test_a_locked_file(tmp_path: Path) -> None:
    add(tmp_path, None, "users", [{"key": "x"}])
    store = SqliteDocuments(tmp_path, TIMEOUT)
    with opened(tmp_path) as connection:
        connection.execute("BEGIN EXCLUSIVE")
        assert "documents.db'" in await complaint(store)
        with raising(DocumentsUnavailable, "documents.db'"):
            await store.index(lookup())
        connection.rollback()
    assert await SqliteDocuments(tmp_path).newest(lookup()) == {"key": "x"}


async def test_a_reader_is_not_in_the_way_of_a_writer(tmp_path: Path) -> None:
    add(tmp_path, None, "users", [{"key": "x"}])
    with opened(tmp_path) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
    store = SqliteDocuments(tmp_path)
    with opened(tmp_path) as connection:
        connection.execute("BEGIN IMMEDIATE")
        assert await store.newest(lookup()) == {"key": "x"}
        connection.rollback()


async def test_a_lookup_that_takes_too_long(tmp_path: Path) -> None:
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
    with opened(tmp_path) as connection:
        documents = "SELECT i AS id, json_object('n', i) AS doc FROM n"
        connection.execute(f"CREATE VIEW users AS {endless} {documents}")
    store = SqliteDocuments(tmp_path, TIMEOUT)
    said = await complaint(store)
    assert "'key'" in said and "'users'" in said


async def test_damaged_files(tmp_path: Path) -> None:
    store = SqliteDocuments(tmp_path)
    file = tmp_path / "documents.db"
    file.write_bytes(b"This is no database. " * 100)
    assert "documents.db'" in await complaint(store)
    file.unlink()
    add(tmp_path, None, "users", [{"key": "x", "n": n} for n in range(2000)])
    content = bytearray(file.read_bytes())
    content[4096 * 2 :] = b"\xff" * (len(content) - 4096 * 2)
    file.write_bytes(content)
    assert "documents.db'" in await complaint(store)
    file.write_bytes(b"")
    assert await store.newest(lookup()) is None


async def test_a_file_that_is_replaced(tmp_path: Path) -> None:
    store = SqliteDocuments(tmp_path)
    for n in range(3):
        add(tmp_path, None, "users", [{"key": "x", "n": n}])
        assert await store.newest(lookup()) == {"key": "x", "n": n}
        (tmp_path / "documents.db").unlink()
        assert await store.newest(lookup()) is None


async def test_tables_that_are_no_collections(tmp_path: Path) -> None:
    store = SqliteDocuments(tmp_path)
    for columns in ("id INTEGER PRIMARY KEY", "doc TEXT", "id INTEGER, document TEXT"):
        with opened(tmp_path) as connection:
            connection.execute("DROP TABLE IF EXISTS users")
            connection.execute(f"CREATE TABLE users ({columns})")
        assert "'users'" in await complaint(store)
    for table in ("sqlite_master", "sqlite_schema"):
        assert await store.newest(lookup(collection=table)) is None


async def test_a_row_that_is_no_document(tmp_path: Path) -> None:
    add(tmp_path, None, "users", [{"key": "x"}])
    with opened(tmp_path) as connection:
        connection.execute("INSERT INTO users (doc) VALUES ('{')")
    assert "malformed JSON" in await complaint(SqliteDocuments(tmp_path))


async def test_a_tenant_field_in_disguise(tmp_path: Path) -> None:
    """SQLite may not know an escaped name, and reads the first of two equal ones."""
    add(tmp_path, None, "users", [{"key": "x", "n": 1}])
    with opened(tmp_path) as connection:
        for text in (
            r'{"key": "x", "\u0061pp_id": "globex"}',
            '{"key": "x", "app_id": "acme", "app_id": "globex"}',
            '{"key": "x", "app_id": "globex", "app_id": "acme"}',
        ):
            connection.execute("INSERT INTO users (doc) VALUES (?)", (text,))
    assert await SqliteDocuments(tmp_path).newest(lookup()) == {"key": "x", "n": 1}


@pytest.mark.parametrize("name", ["../out", "a/b", "a\\b", "..", ".", "", "a\0", "C:x", "\ud800"])
async def test_databases_outside_the_folder(tmp_path: Path, name: str) -> None:
    add(tmp_path, "out", "users", [{"key": "x"}])
    store = SqliteDocuments(tmp_path / "folder")
    with pytest.raises(UsageError):
        await store.newest(lookup(database=name))
    with pytest.raises(UsageError):
        await store.index(lookup(database=name))


async def test_a_link_out_of_the_folder(tmp_path: Path) -> None:
    add(tmp_path, "out", "users", [{"key": "x"}])
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "documents.db").symlink_to(tmp_path / "out.db")
    with raising(UsageError, "documents"):
        await SqliteDocuments(folder).newest(lookup())


@pytest.mark.parametrize("name", ["%2e%2e", "a?mode=rwc", "a#b", "file:", "ü 走", "x" * 300])
async def test_odd_databases(tmp_path: Path, name: str) -> None:
    store = SqliteDocuments(tmp_path)
    if ":" in name or len(name) > 255:
        with pytest.raises(UsageError) if ":" in name else anyio.fail_after(PATIENCE):
            assert await store.newest(lookup(database=name)) is None
        return
    assert await store.newest(lookup(database=name)) is None
    assert not os.listdir(tmp_path)
    add(tmp_path, name, "users", [{"key": "x"}])
    assert await store.newest(lookup(database=name)) == {"key": "x"}
    await store.index(lookup(database=name))


async def test_what_is_no_file(tmp_path: Path) -> None:
    store = SqliteDocuments(tmp_path, TIMEOUT)
    os.mkfifo(tmp_path / "documents.db")
    assert "documents.db'" in await complaint(store)
    (tmp_path / "documents.db").unlink()
    (tmp_path / "documents.db").mkdir()
    assert "documents.db'" in await complaint(store)
    assert await SqliteDocuments(tmp_path / "nowhere").newest(lookup()) is None


async def test_a_lookup_writes_nothing(tmp_path: Path, strict_loop: None) -> None:
    add(tmp_path, None, "users", [{"key": "x"}])
    before = (tmp_path / "documents.db").read_bytes()
    await SqliteDocuments(tmp_path).newest(lookup())
    assert os.listdir(tmp_path) == ["documents.db"]
    assert (tmp_path / "documents.db").read_bytes() == before
