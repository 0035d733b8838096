"""Opening the file: ours, and only ours."""

import sqlite3
from pathlib import Path

from turnloom.adapters.sqlite import queries
from turnloom.errors import StoreUnavailable


def connect(path: Path, timeout: float) -> sqlite3.Connection:
    """A connection that commits by itself unless told otherwise, for one thread at a time."""
    connection = sqlite3.connect(
        path,
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
        if not _is_ours(connection, path):
            connection.execute(queries.USE_WAL)
            _make(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def _make(connection: sqlite3.Connection, path: Path) -> None:
    """Make the schema, unless another process was faster."""
    connection.execute(queries.BEGIN)
    try:
        if not _is_ours(connection, path):
            for statement in queries.SCHEMA:
                connection.execute(statement)
    except BaseException:
        if connection.in_transaction:
            connection.execute(queries.ROLLBACK)
        raise
    connection.execute(queries.COMMIT)


def _is_ours(connection: sqlite3.Connection, path: Path) -> bool:
    """Whether the file holds a schema of ours; False for an empty one, an error for any other."""
    application = _number(connection, queries.APPLICATION_ID)
    version = _number(connection, queries.USER_VERSION)
    if application != queries.APPLICATION:
        if application or version or not _number(connection, queries.IS_EMPTY):
            raise StoreUnavailable(
                f"{str(path)!r} is a database of another program, so it is left alone. "
                "Choose another file for the store."
            )
        return False
    if version != queries.VERSION:
        when = "a later" if version > queries.VERSION else "an earlier"
        raise StoreUnavailable(
            f"{str(path)!r} was written by {when} release of Turnloom (schema {version}; this "
            f"release knows {queries.VERSION}). Read it with that release, or choose another file "
            "for the store."
        )
    return True


def _number(connection: sqlite3.Connection, query: str) -> int:
    return connection.execute(query).fetchone()[0]
