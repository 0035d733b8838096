"""The file of collections: opened for each use, and closed after it."""

import sqlite3
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path
from time import sleep

from turnloom.adapters.sqlite.vectors import queries
from turnloom.errors import CollectionUnavailable

_LOCKED = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)

# Seconds between two tries to change how a file is written.
PAUSE = 0.01


class VectorFile:
    """One file; it is made by the first who writes. `patience` is how many seconds a write waits
    for another process that writes."""

    def __init__(self, path: Path, patience: float) -> None:
        self.path = path.absolute()
        self._patience = patience
        # Whether the file was there once, for this process.
        self._was_there = False

    @contextmanager
    def reading(self) -> Generator[sqlite3.Connection | None, None, None]:
        """A connection for reading; none where no file was made yet.

        Raises:
            CollectionUnavailable: the file cannot be read, is gone, or is none of ours.
        """
        was_there = self._was_there  # before looking: another thread may make the file meanwhile
        if not self.path.exists():
            if was_there:
                raise CollectionUnavailable(
                    f"The file of collections {str(self.path)!r} was deleted while it was in use. "
                    "Put it back, or ingest again."
                )
            yield None
            return
        self._was_there = True
        with self._translated(), closing(self._connect()) as connection:
            yield connection if self._is_made(connection) else None

    @contextmanager
    def writing(self) -> Generator[sqlite3.Connection, None, None]:
        """A connection in a transaction that is committed at the end, or nothing was changed.

        Raises:
            CollectionUnavailable: the file cannot be made or written, or is none of ours.
        """
        self._make_folder()
        with self._translated(), closing(self._connect()) as connection:
            self._is_made(connection)  # a file of another program stays as it is
            self._use_wal(connection)
            connection.execute(queries.BEGIN_WRITING)
            self._make(connection)
            yield connection
            connection.execute(queries.COMMIT)
            self._was_there = True

    def _is_made(self, connection: sqlite3.Connection) -> bool:
        """Whether the file holds our schema when nobody is making it."""
        connection.execute(queries.BEGIN)
        is_ours = self._is_ours(connection)
        connection.execute(queries.COMMIT)
        return is_ours

    def _make(self, connection: sqlite3.Connection) -> None:
        """See that the file holds our schema."""
        for statement in () if self._is_ours(connection) else queries.SCHEMA:
            connection.execute(statement)

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, timeout=self._patience, isolation_level=None)
        for setting in queries.SETTINGS:
            connection.execute(setting)
        return connection

    def _use_wal(self, connection: sqlite3.Connection) -> None:
        """Let nobody who reads wait for who writes. Of several who change a file to that at once,
        SQLite refuses all but one, without the patience that it has elsewhere."""
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
            if not self.path.exists():  # documents may be for a few; SQLite's other files follow
                self.path.touch(mode=0o600)
        except OSError as error:
            raise CollectionUnavailable(
                f"{str(self.path)!r} cannot be made: {error.strerror}. "
                "Choose another place for the collections."
            ) from error

    def _is_ours(self, connection: sqlite3.Connection) -> bool:
        """Whether the file holds our schema; False for an empty one, an error for any other."""
        application = _number(connection, queries.APPLICATION_ID)
        version = _number(connection, queries.USER_VERSION)
        if application == queries.APPLICATION and version != queries.VERSION:
            when = "a later" if version > queries.VERSION else "an earlier"
            raise CollectionUnavailable(
                f"{str(self.path)!r} was written by {when} release of Turnloom (schema {version}; "
                f"this release knows {queries.VERSION}). Read it with that release, or choose "
                "another file and ingest again."
            )
        if application == queries.APPLICATION:
            return True
        if application or version or not _number(connection, queries.IS_EMPTY):
            raise CollectionUnavailable(
                f"{str(self.path)!r} is a database of another program, or not of collections, so "
                "it is left alone. Choose another file for the collections."
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
        file = f"The file of collections {str(self.path)!r}"
        if code in _LOCKED:
            return (
                f"{file} is locked by another process and stayed so for {self._patience:g} s. "
                "End that process, or wait until it is done."
            )
        if code in _DAMAGED:
            return f"{file} is damaged or no database ({error}). Remove it and ingest again."
        return f"{file} cannot be used: {error}. Check its permissions, its folder and the disk."


def _number(connection: sqlite3.Connection, query: str) -> int:
    return connection.execute(query).fetchone()[0]
