"""Stores in PostgreSQL that stand in for those in memory and in files."""

import asyncio
import os
from itertools import count
from pathlib import Path
from typing import Any
from weakref import WeakSet

import psycopg
from psycopg.sql import SQL, Identifier

import turnloom.adapters.memory
import turnloom.adapters.sqlite
from turnloom.adapters.postgres import PostgresStore
from turnloom.log.logic import Codec

# Where the database is: children of a test find it here.
PLACE = "TURNLOOM_TESTS_POSTGRES"

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
LEAVE = """
    SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()"""

_numbers = count(1)
stands: "WeakSet[Stand]" = WeakSet()


def schema_of(store: str) -> str:
    """The schema that stands for a store."""
    with psycopg.connect(os.environ[PLACE], autocommit=True) as connection:
        for statement, values in ((FIND, (store,)), (TAKE, (store,))):
            if found := connection.execute(statement, values).fetchone():
                return found[0]
        name = f"t{os.getpid()}_{next(_numbers)}"
        connection.execute(SQL("CREATE SCHEMA {}").format(Identifier(name)))
        connection.execute(ADD, (name, store))
        return name


def empty_all() -> None:
    """Empty what was used."""
    with psycopg.connect(os.environ[PLACE], autocommit=True) as connection:
        connection.execute(LEAVE)
        used = [name for (name,) in connection.execute(USED).fetchall()]
        for name in used:
            tables = [table for (table,) in connection.execute(TABLES, (name,)).fetchall()]
            gone = SQL(";").join(
                SQL("DELETE FROM {}").format(Identifier(name, table)) for table in tables
            )
            if tables:
                connection.execute(gone)
        connection.execute(FREE, (used,))


class Stand(PostgresStore):
    """A store in a schema of its own."""

    def __init__(self, store: str, codec: Codec, **settings: Any) -> None:
        url = f"{os.environ[PLACE]}?options=-csearch_path%3D{schema_of(store)}"
        super().__init__(url, codec, **settings)
        self.loop = asyncio._get_running_loop()
        stands.add(self)

    def abandon(self) -> None:
        """Drop the connections, when the loop is over that they belong to."""
        connections = self._database._connections
        while connections._idle:
            connections._idle.pop().pgconn.finish()


class MemoryStand(Stand):
    """Stands in for a store in memory."""

    def __init__(self, codec: Codec, *, board: bool = True) -> None:
        super().__init__(f"memory {os.getpid()} {next(_numbers)}", codec, board=board)


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
        super().__init__(str(Path(path).absolute()), codec, lease=lease, board=board)


async def close_all() -> None:
    """Close what a test left open in this loop."""
    for stand in [*stands]:
        if stand.loop is asyncio.get_running_loop():
            stands.discard(stand)
            await stand.aclose()


def abandon_all() -> None:
    """Drop what a test left open in other loops."""
    for stand in [*stands]:
        stands.discard(stand)
        stand.abandon()


def install() -> None:
    """Open these instead of others, from now on."""
    turnloom.adapters.memory.MemoryStore = MemoryStand  # type: ignore[misc]
    turnloom.adapters.sqlite.SqliteStore = FileStand  # type: ignore[misc]
