"""Open the SQLite file, and check that it is a store of this release."""

import os
import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from turnloom.adapters.sqlite import queries
from turnloom.adapters.sqlite.listing import migrate
from turnloom.errors import StoreUnavailable

# Seconds between two checks that the WAL exists.
WAL_INTERVAL = 0.1


def connect(path: Path, timeout: float) -> sqlite3.Connection:
    """A connection in autocommit mode, for one thread at a time. The file must exist, so that one
    deleted meanwhile is not created again."""
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
    """A connection for writing."""
    connection = connect(path, timeout)
    connection.execute(queries.LARGE_CACHE)
    return connection


def connect_reader(path: Path, timeout: float) -> sqlite3.Connection:
    """A read-only connection."""
    connection = connect(path, timeout)
    connection.execute(queries.READ_ONLY)
    return connection


class Files:
    """Identities of the file and its WAL. Commits after one of them is deleted are lost, and SQLite
    does not report it."""

    def __init__(self, path: Path) -> None:
        self._file = str(path)
        self._wal = f"{path}-wal"
        self._file_id = _identify(self._file)
        self._wal_id = _identify(self._wal)
        self._checked_at = 0.0

    def wal_size(self) -> int:
        """The size of the WAL in bytes; it is truncated when it restarts."""
        try:
            return os.stat(self._wal).st_size
        except OSError:
            return 0

    def loss(self, now: float) -> str:
        """What happened to the files, with a remedy, if one was deleted or replaced. The file is
        checked on each call, the WAL at intervals."""
        if not _is_there(self._file, self._file_id):
            return (
                f"{self._file!r} was deleted or replaced while it was open. New data would be "
                "lost, so the store stops. Put the file back, and continue its runs with "
                "`turnloom resume RUN`."
            )
        if now - self._checked_at < WAL_INTERVAL:
            return ""
        self._checked_at = now
        if not _is_there(self._wal, self._wal_id):
            return (
                f"{self._wal!r} was deleted while the store was open. The last writes are lost, "
                "and the store stops. Check it with `turnloom store verify`, and continue its "
                "runs with `turnloom resume RUN`."
            )
        return ""


def _identify(file: str) -> tuple[int, int] | None:
    """The identity of a file; None if it cannot be accessed."""
    try:
        found = os.stat(file)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _is_there(file: str, identity: tuple[int, int] | None) -> bool:
    """Whether a file still has its identity; inaccessible files count as unchanged."""
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
    """A connection that does not wait for locks, to a store file; the file and its folder are
    created if missing.

    Raises:
        StoreUnavailable: the file cannot be created, is not a store, or is from another release.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():  # runs are private to their owner; SQLite's other files follow
            path.touch(mode=0o600)
    except OSError as error:
        raise StoreUnavailable(
            f"Cannot create {str(path)!r}: {error.strerror}. Choose another place for the store."
        ) from error
    connection = connect_writer(path, 0.0)
    try:
        if _is_liftable(connection):
            _lift(connection)
        if not _is_ours(connection, path):
            connection.execute(queries.CAN_SHRINK)
            connection.execute(queries.USE_WAL)
            _create_schema(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def _create_schema(connection: sqlite3.Connection, path: Path) -> None:
    """Create the schema, unless another process was faster."""
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
    """Lift a file of an earlier release, unless another process was faster."""
    with _transaction(connection):
        if _is_liftable(connection):
            migrate(connection)


def _is_liftable(connection: sqlite3.Connection) -> bool:
    is_ours = _number(connection, queries.APPLICATION_ID) == queries.APPLICATION
    return is_ours and _number(connection, queries.USER_VERSION) in queries.LIFTED


def _is_ours(connection: sqlite3.Connection, path: Path) -> bool:
    """Whether the file has our schema; False if it is empty, an error otherwise."""
    application = _number(connection, queries.APPLICATION_ID)
    version = _number(connection, queries.USER_VERSION)
    if not (application or version) and _number(connection, queries.IS_EMPTY):
        return False
    if problem := mismatch(connection, path):
        raise StoreUnavailable(problem)
    return True


def mismatch(connection: sqlite3.Connection, path: Path) -> str:
    """Why the file cannot be used, if its schema is not that of this release."""
    version = _number(connection, queries.USER_VERSION)
    if _number(connection, queries.APPLICATION_ID) != queries.APPLICATION:
        return f"{str(path)!r} is a database of another program. Choose another file for the store."
    if version != queries.VERSION:
        when = "a later" if version > queries.VERSION else "an earlier"
        return (
            f"{str(path)!r} was written by {when} release of Turnloom (schema {version}; this "
            f"release uses {queries.VERSION}). Use that release, or choose another file for the "
            "store."
        )
    return ""


def _number(connection: sqlite3.Connection, query: str) -> int:
    return connection.execute(query).fetchone()[0]
