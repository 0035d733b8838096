"""The tables of a store, reached past the store: those of a SQLite file, or those in PostgreSQL
that stand for the file under `--store postgres`."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from tests.support.on_postgres.stands import place

REFUSED = (sqlite3.IntegrityError, psycopg.errors.RaiseException)


class Tables:
    """Those of a SQLite file."""

    prefix = ""
    _names = "SELECT name FROM sqlite_master WHERE type = 'table'"
    _batches = "SELECT 'pos = ' || pos, data FROM batches WHERE pos >> 32 = {} ORDER BY pos"
    _bytes = "x'{}'"
    _full = (
        "CREATE TRIGGER full_disk BEFORE INSERT ON batches "
        "BEGIN SELECT raise(abort, 'the disk is full'); END",
    )
    _free = "DROP TRIGGER full_disk"

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def execute(self, statement: str) -> list[tuple[Any, ...]]:
        """Execute a statement with `{}` before the names of tables; the rows that it gives."""
        cursor = self._connection.execute(statement.replace("{}", self.prefix))
        return cursor.fetchall() if cursor.description else []

    def names(self) -> list[str]:
        """The names of the tables, without what stands before them."""
        return [name.removeprefix(self.prefix) for (name,) in self.execute(self._names)]

    def counts(self) -> dict[str, int]:
        """How many rows each table has."""
        return {
            name: self.execute(f"SELECT count(*) FROM {{}}{name}")[0][0] for name in self.names()
        }

    def batches(self, run: str) -> list[tuple[str, bytes]]:
        """The appends of a run: what finds each, and its bytes."""
        ((n,),) = self.execute(f"SELECT n FROM {{}}runs WHERE id = '{run}'")
        return [(where, bytes(data)) for where, data in self.execute(self._batches.format(n))]

    def rewrite(self, run: str, change: Callable[[bytes], bytes]) -> None:
        """Change the bytes of a run's appends, and not their digests."""
        for where, data in self.batches(run):
            value = self._bytes.format(change(data).hex())
            self.execute(f"UPDATE {{}}batches SET data = {value} WHERE {where}")

    def fill_disk(self) -> None:
        """Let no event be appended any more."""
        for statement in self._full:
            self.execute(statement)

    def free_disk(self) -> None:
        """Let events be appended again."""
        self.execute(self._free)

    def lose(self, run: str, number: int) -> None:
        """Remove one of a run's appends."""
        self.execute(f"DELETE FROM {{}}batches WHERE {self.batches(run)[number][0]}")


class PostgresTables(Tables):
    """Those of a schema in PostgreSQL."""

    prefix = "turnloom_"
    _names = (
        "SELECT tablename FROM pg_tables WHERE schemaname = current_schema "
        "AND tablename <> 'turnloom_schema'"
    )
    _batches = (
        "SELECT 'run = ' || run || ' AND first = ' || first, data FROM turnloom_batches "
        "WHERE run = {} ORDER BY first"
    )
    _bytes = "'\\x{}'"
    _full = (
        "CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS "
        "'BEGIN RAISE disk_full USING MESSAGE = ''the disk is full''; END'",
        "CREATE TRIGGER full_disk BEFORE INSERT ON turnloom_batches "
        "FOR EACH ROW EXECUTE FUNCTION full_disk()",
    )
    _free = "DROP FUNCTION full_disk CASCADE"


def _schema(store: Path) -> str:
    """The schema that stands for a file; "" for a real one."""
    head = store.read_bytes()[:64]
    return "" if head.startswith(b"SQLite format 3") else head.decode()


@contextmanager
def tables_of(store: Path) -> Iterator[Tables]:
    """The tables of a store; what was changed is committed at the end."""
    if not (schema := _schema(store)):
        with closing(sqlite3.connect(store)) as connection, connection:
            yield Tables(connection)
        return
    with psycopg.connect(place()) as server:
        server.execute(sql.SQL("SET search_path = {}").format(sql.Identifier(schema)))
        yield PostgresTables(server)


def content_of(folder: Path, *, without: str = "*.py") -> bytes:
    """All bytes of the files in a folder, and of the rows of stores that files stand for."""
    files = [path for path in folder.rglob("*") if path.is_file() and not path.match(without)]
    parts = [file.read_bytes() for file in files]
    for file in files:
        if file.suffix == ".db" and _schema(file):
            with tables_of(file) as tables:
                for name in tables.names():
                    parts += [_plain(row) for row in tables.execute(f"SELECT * FROM {{}}{name}")]
    return b"\n".join(parts)


def _plain(row: tuple[Any, ...]) -> bytes:
    return b" ".join(each if isinstance(each, bytes) else str(each).encode() for each in row)
