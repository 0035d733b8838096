"""Stores in PostgreSQL that stand in for those in memory and in files."""

import asyncio
import os
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
from psycopg.sql import SQL, Identifier, Literal

import turnloom.adapters.memory
import turnloom.adapters.sqlite
from turnloom.adapters.postgres import PostgresStore
from turnloom.adapters.postgres.schema import schema_of as tables_of
from turnloom.log.logic import Codec

# Where the database is: children of a test find it here.
PLACE = "TESTS_POSTGRES"

# Which schema stands for which store; those of none are empty, and can be taken.
TABLE = "CREATE TABLE IF NOT EXISTS public.stands (name text PRIMARY KEY, store text UNIQUE)"
FIND = "SELECT name FROM public.stands WHERE store = %s"
TAKE = """
    UPDATE public.stands SET store = %s WHERE name = (
        SELECT name FROM public.stands WHERE store IS NULL LIMIT 1 FOR UPDATE SKIP LOCKED)
    RETURNING name"""
ADD = "INSERT INTO public.stands VALUES (%s, %s)"
USED = "SELECT name FROM public.stands WHERE store IS NOT NULL"
FREE = "UPDATE public.stands SET store = NULL WHERE name = ANY (%s)"
TABLES = "SELECT tablename FROM pg_tables WHERE schemaname = %s AND tablename <> 'turnloom_schema'"
SEQUENCES = "SELECT sequencename FROM pg_sequences WHERE schemaname = %s"
LEAVE = """
    SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()"""

# Tables that only grow refuse a removal by a trigger.
UNTRIGGERED = "SET session_replication_role = replica"

_numbers = count(1)
stands: "list[Stand]" = []

# Stores of a test that keep their idle connections: some open a hundred, and close none.
KEEPING = 10


@cache
def place() -> str:
    """Where the database is. A forked command of a test may have no such variable any more."""
    return os.environ[PLACE]


def schema_of(store: str) -> str:
    """The schema that stands for a store."""
    with psycopg.connect(place(), autocommit=True) as connection:
        for statement, values in ((FIND, (store,)), (TAKE, (store,))):
            if found := connection.execute(statement, values).fetchone():
                return found[0]
        name = f"t{os.getpid()}_{next(_numbers)}"
        connection.execute(SQL("CREATE SCHEMA {}").format(Identifier(name)))
        connection.execute(ADD, (name, store))
        return name


def empty_all() -> None:
    """Empty what was used."""
    with psycopg.connect(place(), autocommit=True) as connection:
        connection.execute(LEAVE)
        connection.execute(UNTRIGGERED)
        used = [name for (name,) in connection.execute(USED).fetchall()]
        for name in used:
            tables = [table for (table,) in connection.execute(TABLES, (name,)).fetchall()]
            gone = SQL(";").join(
                SQL("DELETE FROM {}").format(Identifier(name, table)) for table in tables
            )
            if tables:
                connection.execute(gone)
        connection.execute(FREE, (used,))


def stand_for(path: Path) -> str:
    """The schema that stands for a file. A file with its name is there as well, so that a copy of
    the file becomes a copy of the store."""
    is_new = not path.exists()
    if is_new:
        path.parent.mkdir(parents=True, exist_ok=True)
    schema = schema_of(str(path))
    named = "" if is_new else path.read_text()
    if named != schema:
        if named:
            clone(named, schema)
        path.write_text(schema)
    return schema


def clone(source: str, target: str) -> None:
    """Copy all rows of a schema into an empty one."""
    with psycopg.connect(place()) as connection:
        connection.execute(SQL("SET LOCAL search_path = {}").format(Identifier(target)))
        connection.execute(
            "CREATE TABLE IF NOT EXISTS turnloom_schema (part text PRIMARY KEY, version integer)"
        )
        if not connection.execute("SELECT FROM turnloom_schema").fetchall():
            for _, step in tables_of("store").steps:
                connection.execute(step)
            version = tables_of("store").version
            connection.execute("INSERT INTO turnloom_schema VALUES ('store', %s)", (version,))
        for (table,) in connection.execute(TABLES, (source,)).fetchall():
            copy = SQL("INSERT INTO {} OVERRIDING SYSTEM VALUE SELECT * FROM {}")
            connection.execute(copy.format(Identifier(target, table), Identifier(source, table)))
        for (sequence,) in connection.execute(SEQUENCES, (source,)).fetchall():
            connection.execute(
                SQL("SELECT setval({}, nextval({}))").format(
                    Literal(f"{target}.{sequence}"), Literal(f"{source}.{sequence}")
                )
            )


class Stand(PostgresStore):
    """A store in a schema of its own."""

    def __init__(self, schema: str, codec: Codec, **settings: Any) -> None:
        url = f"{place()}?options=-csearch_path%3D{schema}"
        super().__init__(url, codec, **settings)
        self.loop = asyncio._get_running_loop()
        stands.append(self)
        for earlier in stands[-2 * KEEPING : -KEEPING]:
            earlier.abandon()

    def abandon(self) -> None:
        """Drop idle connections."""
        connections = self._database._connections
        while connections._idle:
            connections._idle.pop().pgconn.finish()


class MemoryStand(Stand):
    """Stands in for a store in memory."""

    def __init__(self, codec: Codec, *, board: bool = True) -> None:
        store = f"memory {os.getpid()} {next(_numbers)}"
        super().__init__(schema_of(store), codec, board=board)


class FileStand(Stand):
    """Stands in for a SQLite file."""

    def __init__(
        self,
        path: Path | str,
        codec: Codec,
        *,
        patience: float = 5.0,
        checkpoint_after: int = 0,
        lease: float = 30.0,
        board: bool = True,
        is_synced: bool = False,
    ) -> None:
        super().__init__(stand_for(Path(path).absolute()), codec, lease=lease, board=board)


async def close_all() -> None:
    """Close what a test left open in this loop."""
    for stand in [*stands]:
        if stand.loop is asyncio.get_running_loop():
            stands.remove(stand)
            await stand.aclose()


def abandon_all() -> None:
    """Drop what a test left open in other loops."""
    while stands:
        stands.pop().abandon()


def install() -> None:
    """Open these instead of others, from now on."""
    place()
    turnloom.adapters.memory.MemoryStore = MemoryStand  # type: ignore[misc]
    turnloom.adapters.sqlite.SqliteStore = FileStand  # type: ignore[misc]
