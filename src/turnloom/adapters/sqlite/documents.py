"""Documents in SQLite files. A database is a file in one folder, a collection is a table.

A table of documents has the columns `id` (integer primary key) and `doc` (JSON text). Each lookup
opens and closes its file. That is cheaper than the lookup itself, holds no lock in between, and
sees a replaced file.
"""

import json
import os
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from functools import partial
from pathlib import Path
from threading import Event
from typing import TypeVar

import anyio
from anyio import to_thread

from turnloom.adapters.sqlite import lookups
from turnloom.errors import DocumentsUnavailable, UsageError
from turnloom.kernel.values import Json
from turnloom.variables.logic.paths import is_storable
from turnloom.variables.ports import Lookup, Scalar

DEFAULT_DATABASE = "documents"

# Seconds beyond the timeout that SQLite itself waits for, until the read is abandoned.
GRACE = 0.5
# The time limit for building an index, which reads the whole table.
BUILDING = 600.0
# SQLite instructions between two checks whether the caller still waits.
STRIDE = 10_000

_LOCKED = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_CLOSED = (
    *(sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_READONLY),
    *(sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL),
)
_NO_COLLECTION = (
    "A collection is a table with the columns id (integer primary key) and doc (JSON text)."
)

T = TypeVar("T")


class SqliteDocuments:
    """Documents in the files of one folder. The default database is documents.db."""

    def __init__(self, folder: Path | str, timeout: float = 5.0) -> None:
        self._folder = Path(folder)
        self._timeout = timeout
        self._closed = False

    async def newest(self, lookup: Lookup) -> Mapping[str, Json] | None:
        """The newest matching document; None also if the file or table does not exist.

        Raises:
            DocumentsUnavailable: the file is damaged, or locked beyond the timeout.
            UsageError: a database name is invalid, or the documents are closed.
        """
        statement, values = lookups.newest(lookup)
        read = partial(_read, lookup=lookup, statement=statement, values=values)
        return await self._run(lookup, "ro", read, self._timeout + GRACE)

    async def index(self, lookup: Lookup) -> bool:
        """Create an index on the key if the table exists; writers wait meanwhile."""
        build = partial(_build, statement=lookups.index(lookup))
        return await self._run(lookup, "rw", build, BUILDING) or False

    async def aclose(self) -> None:
        """Refuse all later calls. Idempotent."""
        self._closed = True

    async def _run(
        self, lookup: Lookup, mode: str, work: Callable[[sqlite3.Connection], T], limit: float
    ) -> T | None:
        if self._closed:
            raise UsageError("The documents are closed. Open them again.")
        path = self._locate(lookup.database)
        if not is_storable(lookup.texts + lookup.collection):
            return None
        abandoned = Event()
        try:
            with anyio.fail_after(limit):
                return await to_thread.run_sync(
                    self._perform, path, mode, lookup, work, abandoned, abandon_on_cancel=True
                )
        except TimeoutError as error:
            raise DocumentsUnavailable(
                f"SQLite did not answer from {str(path)!r} within {limit:g} s. Create an index on "
                f"{lookup.key!r} in {lookup.collection!r} to speed up the lookup."
            ) from error
        finally:
            abandoned.set()

    def _locate(self, database: str | None) -> Path:
        name = DEFAULT_DATABASE if database is None else database
        if not name or not is_storable(name) or name in (".", "..") or set(name) & set("/\\:"):
            raise UsageError(
                f"{name!r} is not a valid database name. Use the name of a file in "
                f"{str(self._folder)!r} without '.db'; '/', '\\' and ':' are not allowed."
            )
        return self._folder / f"{name}.db"

    def _perform(
        self,
        path: Path,
        mode: str,
        lookup: Lookup,
        work: Callable[[sqlite3.Connection], T],
        abandoned: Event,
    ) -> T | None:
        """In a thread: do the work on a new connection; None if the file or table does not
        exist."""
        if not self._exists(path):
            return None
        uri = f"{path.absolute().as_uri()}?mode={mode}"
        try:
            with closing(sqlite3.connect(uri, timeout=self._timeout, uri=True)) as connection:
                connection.set_progress_handler(abandoned.is_set, STRIDE)
                if not connection.execute(lookups.TABLE, (lookup.collection,)).fetchone():
                    return None
                return work(connection)
        except sqlite3.Error as error:
            raise DocumentsUnavailable(self._explain(error, path, lookup)) from error
        except (ValueError, RecursionError) as error:
            raise DocumentsUnavailable(
                f"Cannot read a document in table {lookup.collection!r} of the SQLite file "
                f"{str(path)!r}: {error}. Repair it."
            ) from error

    def _exists(self, path: Path) -> bool:
        if not os.path.lexists(path):
            return False
        folder = os.path.realpath(self._folder)
        if os.path.dirname(os.path.realpath(path)) != folder:
            raise UsageError(
                f"{str(path)!r} is a link that leaves its folder. Move the file into the folder, "
                "or use the folder of the file for the documents."
            )
        if not os.path.isfile(path):
            raise DocumentsUnavailable(
                f"{str(path)!r} is not a regular file. Replace it with a SQLite database."
            )
        return True

    def _explain(self, error: sqlite3.Error, path: Path, lookup: Lookup) -> str:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        file = f"The SQLite file {str(path)!r}"
        if code in _LOCKED:
            return (
                f"{file} was locked by another process for {self._timeout:g} s. "
                "End that process, or wait until it is done."
            )
        if code in _DAMAGED:
            return f"{file} is damaged or not a database ({error}). Replace it with a backup."
        if code in _CLOSED:
            return f"{file} cannot be used: {error}. Check its permissions, its folder and disk."
        return f"{file} has no collection {lookup.collection!r}: {error}. {_NO_COLLECTION}"


def _read(
    connection: sqlite3.Connection, lookup: Lookup, statement: str, values: tuple[Scalar, ...]
) -> Mapping[str, Json] | None:
    for (text,) in connection.execute(statement, values):
        document = json.loads(text)
        if lookups.fits(document, lookup):
            return document
    return None


def _build(connection: sqlite3.Connection, statement: str) -> bool:
    with connection:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(statement)
    return True
