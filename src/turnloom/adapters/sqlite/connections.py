"""Opening the file: ours, and only ours."""

import os
import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from turnloom.adapters.sqlite import queries
from turnloom.adapters.sqlite.listing import migrate
from turnloom.errors import StoreUnavailable

# Seconds between two looks at whether the WAL is there.
WAL_INTERVAL = 0.1


def connect(path: Path, timeout: float) -> sqlite3.Connection:
    """A connection that commits by itself unless told otherwise, for one thread at a time. The file
    is there: one that is deleted meanwhile is not made again."""
    connection = sqlite3.connect(
        f"{path.as_uri()}?mode=rw",
        uri=True,
        timeout=timeout,
        isolation_level=None,
        check_same_thread=False,
    )
    for setting in queries.SETTINGS:
        connection.execute(setting)
    return connection


def connect_writer(path: Path, timeout: float) -> sqlite3.Connection:
    """A connection that writes."""
    connection = connect(path, timeout)
    connection.execute(queries.ROOMY)
    return connection


def connect_reader(path: Path, timeout: float) -> sqlite3.Connection:
    """A connection that cannot write."""
    connection = connect(path, timeout)
    connection.execute(queries.READ_ONLY)
    return connection


class Files:
    """The file of a store and its WAL, as they were when it was opened: whatever is committed once
    one of them has gone is lost, and SQLite does not say so."""

    def __init__(self, path: Path) -> None:
        self._file = str(path)
        self._wal = f"{path}-wal"
        self._file_id = _identify(self._file)
        self._wal_id = _identify(self._wal)
        self._looked = 0.0

    def wal_size(self) -> int:
        """How many bytes the WAL has, which is cut off when it begins anew."""
        try:
            return os.stat(self._wal).st_size
        except OSError:
            return 0

    def loss(self, now: float) -> str:
        """What became of them, with a remedy, if one was deleted or another is in its place. The
        file is looked at each time, the WAL now and then."""
        if not _is_there(self._file, self._file_id):
            return (
                f"{self._file!r} was deleted or replaced while it was open. What is stored now "
                "would be lost, so nothing more is done. Put the file back, and continue its runs "
                "with `turnloom resume RUN`."
            )
        if now - self._looked < WAL_INTERVAL:
            return ""
        self._looked = now
        if not _is_there(self._wal, self._wal_id):
            return (
                f"{self._wal!r} was deleted while the store was open, and the store lost its end "
                "with it: what was stored last is missing. Nothing more is done. Look at what is "
                "left with `turnloom store verify`, and continue its runs with "
                "`turnloom resume RUN`."
            )
        return ""


def _identify(file: str) -> tuple[int, int] | None:
    """What tells a file from all others, if it can be seen."""
    try:
        found = os.stat(file)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _is_there(file: str, identity: tuple[int, int] | None) -> bool:
    """Whether a file is the one that it was, as far as that can be seen."""
    if identity is None:
        return True
    try:
        found = os.stat(file)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return (found.st_dev, found.st_ino) == identity


def prepare(path: Path) -> sqlite3.Connection:
    """A connection that waits for nobody, to a file of ours; it and its folder are made if missing.

    Raises:
        StoreUnavailable: it cannot be made, or the file is not ours or of another release.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():  # runs are private to their owner; SQLite's other files follow
            path.touch(mode=0o600)
    except OSError as error:
        raise StoreUnavailable(
            f"{str(path)!r} cannot be made: {error.strerror}. Choose another place for the store."
        ) from error
    connection = connect_writer(path, 0.0)
    try:
        if _is_liftable(connection):
            _lift(connection)
        if not _is_ours(connection, path):
            connection.execute(queries.CAN_SHRINK)
            connection.execute(queries.USE_WAL)
            _make(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def _make(connection: sqlite3.Connection, path: Path) -> None:
    """Make the schema, unless another process was faster."""
    with _transaction(connection):
        if not _is_ours(connection, path):
            for statement in queries.SCHEMA:
                connection.execute(statement)


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Generator[None]:
    connection.execute(queries.BEGIN)
    try:
        yield
    except BaseException:
        if connection.in_transaction:
            connection.execute(queries.ROLLBACK)
        raise
    connection.execute(queries.COMMIT)


def _lift(connection: sqlite3.Connection) -> None:
    """Lift a file of the release before this one, unless another process was faster."""
    with _transaction(connection):
        if _is_liftable(connection):
            migrate(connection)


def _is_liftable(connection: sqlite3.Connection) -> bool:
    is_ours = _number(connection, queries.APPLICATION_ID) == queries.APPLICATION
    return is_ours and _number(connection, queries.USER_VERSION) == queries.LIFTED


def _is_ours(connection: sqlite3.Connection, path: Path) -> bool:
    """Whether the file holds a schema of ours; False for an empty one, an error for any other."""
    application = _number(connection, queries.APPLICATION_ID)
    version = _number(connection, queries.USER_VERSION)
    if not (application or version) and _number(connection, queries.IS_EMPTY):
        return False
    if problem := mismatch(connection, path):
        raise StoreUnavailable(problem)
    return True


def mismatch(connection: sqlite3.Connection, path: Path) -> str:
    """Why the file cannot be worked with, if it holds another schema than ours."""
    version = _number(connection, queries.USER_VERSION)
    if _number(connection, queries.APPLICATION_ID) != queries.APPLICATION:
        return (
            f"{str(path)!r} is a database of another program, so it is left alone. "
            "Choose another file for the store."
        )
    if version != queries.VERSION:
        when = "a later" if version > queries.VERSION else "an earlier"
        return (
            f"{str(path)!r} was written by {when} release of Turnloom (schema {version}; this "
            f"release knows {queries.VERSION}). Read it with that release, or choose another file "
            "for the store."
        )
    return ""


def _number(connection: sqlite3.Connection, query: str) -> int:
    return connection.execute(query).fetchone()[0]
