"""The file of collections, opened for each use."""

import sqlite3
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path
from time import sleep

from turnloom.adapters.sqlite.vectors import queries
from turnloom.errors import CollectionUnavailable

_LOCKED = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)

# Seconds between two attempts to switch a file to WAL mode.
PAUSE = 0.01


class VectorFile:
    """One file, created by the first write. `patience` is how many seconds a write waits for
    another process."""

    def __init__(self, path: Path, patience: float) -> None:
        self.path = path.absolute()
        self._patience = patience
        # Whether this process has seen the file.
        self._existed = False

    @contextmanager
    def reading(self) -> Generator[sqlite3.Connection | None, None, None]:
        """A connection for reading; None if the file does not exist yet.

        Raises:
            CollectionUnavailable: the file cannot be read, was deleted, or has another schema.
        """
        existed = self._existed  # read first: another thread may create the file meanwhile
        if not self.path.exists():
            if existed:
                raise CollectionUnavailable(
                    f"The collections file {str(self.path)!r} was deleted while it was in use. "
                    "Put it back, or ingest again."
                )
            yield None
            return
        self._existed = True
        with self._translated(), closing(self._connect()) as connection:
            yield connection if self._has_schema(connection) else None

    @contextmanager
    def writing(self) -> Generator[sqlite3.Connection, None, None]:
        """A connection in a transaction, which is committed at the end or rolled back on an error.

        Raises:
            CollectionUnavailable: the file cannot be created or written, or has another schema.
        """
        self._make_folder()
        with self._translated(), closing(self._connect()) as connection:
            self._has_schema(connection)  # raises before changing a file of another program
            self._use_wal(connection)
            connection.execute(queries.BEGIN_WRITING)
            self._ensure_schema(connection)
            yield connection
            connection.execute(queries.COMMIT)
            self._existed = True

    def _has_schema(self, connection: sqlite3.Connection) -> bool:
        """Whether the file has our schema, read in a transaction."""
        connection.execute(queries.BEGIN)
        is_ours = self._is_ours(connection)
        connection.execute(queries.COMMIT)
        return is_ours

    def _ensure_schema(self, connection: sqlite3.Connection) -> None:
        """Create the schema if the file is empty."""
        for statement in () if self._is_ours(connection) else queries.SCHEMA:
            connection.execute(statement)

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, timeout=self._patience, isolation_level=None)
        for setting in queries.SETTINGS:
            connection.execute(setting)
        return connection

    def _use_wal(self, connection: sqlite3.Connection) -> None:
        """Switch to WAL mode, so that readers do not wait for writers. If several connections
        switch at once, SQLite refuses all but one without waiting."""
        for left in reversed(range(1 + round(self._patience / PAUSE))):
            try:
                connection.execute(queries.USE_WAL)
                return
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF not in _LOCKED or not left:
                    raise
                sleep(PAUSE)

    def _make_folder(self) -> None:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            if not self.path.exists():  # documents may be private; SQLite's other files follow
                self.path.touch(mode=0o600)
        except OSError as error:
            raise CollectionUnavailable(
                f"Cannot create {str(self.path)!r}: {error.strerror}. "
                "Choose another place for the collections."
            ) from error

    def _is_ours(self, connection: sqlite3.Connection) -> bool:
        """Whether the file has our schema; False if it is empty, an error otherwise."""
        application = _number(connection, queries.APPLICATION_ID)
        version = _number(connection, queries.USER_VERSION)
        if application == queries.APPLICATION and version != queries.VERSION:
            when = "a later" if version > queries.VERSION else "an earlier"
            raise CollectionUnavailable(
                f"{str(self.path)!r} was written by {when} release of Turnloom (schema {version}; "
                f"this release uses {queries.VERSION}). Use that release, or choose another file "
                "and ingest again."
            )
        if application == queries.APPLICATION:
            return True
        if application or version or not _number(connection, queries.IS_EMPTY):
            raise CollectionUnavailable(
                f"{str(self.path)!r} is not a database of collections. "
                "Choose another file for the collections."
            )
        return False

    @contextmanager
    def _translated(self) -> Generator[None, None, None]:
        try:
            yield
        except sqlite3.Error as error:
            raise CollectionUnavailable(self._explain(error)) from error

    def _explain(self, error: sqlite3.Error) -> str:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        file = f"The collections file {str(self.path)!r}"
        if code in _LOCKED:
            return (
                f"{file} was locked by another process for {self._patience:g} s. "
                "End that process, or wait until it is done."
            )
        if code in _DAMAGED:
            return f"{file} is damaged or not a database ({error}). Remove it and ingest again."
        return f"{file} cannot be used: {error}. Check its permissions, its folder and the disk."


def _number(connection: sqlite3.Connection, query: str) -> int:
    return connection.execute(query).fetchone()[0]
