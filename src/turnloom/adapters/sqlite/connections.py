"""Open the SQLite file, check that it is a store of this release, and update its schema."""

import os
import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from turnloom.adapters.sqlite import queries
from turnloom.errors import StoreUnavailable
from turnloom.runtime.spec import Migration

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
    created if missing, and an empty file is set up.

    Raises:
        StoreUnavailable: the file cannot be created, is not a store, or is from another release.
    """
    create(path)
    connection = connect_writer(path, 0.0)
    try:
        if not _is_ours(connection, path):
            prepare_empty(connection)
            _set_up(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def create(path: Path) -> None:
    """Create the file and its folder, if missing.

    Raises:
        StoreUnavailable: they cannot be created.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():  # runs are private to their owner; SQLite's other files follow
            path.touch(mode=0o600)
    except OSError as error:
        raise StoreUnavailable(
            f"Cannot create {str(path)!r}: {error.strerror}. Choose another place for the store."
        ) from error


def prepare_empty(connection: sqlite3.Connection) -> None:
    """Choose how an empty file is stored, which cannot be changed in a transaction."""
    connection.execute(queries.CAN_SHRINK)
    connection.execute(queries.USE_WAL)


def _set_up(connection: sqlite3.Connection, path: Path) -> None:
    """Take all steps of the schema at once, unless another process was faster."""
    with _transaction(connection):
        if not _is_ours(connection, path):
            for migration in migrations():
                _apply(connection, migration)


# The files of the schema, one for each version since the first that can be migrated.
_SCHEMA = Path(__file__).with_name("schema")


@cache
def migrations() -> tuple[Migration, ...]:
    """All steps of the schema, in order."""
    named = (each.stem.partition("_") for each in _SCHEMA.glob("*.sql"))
    return tuple(sorted(Migration(int(number), name) for number, _, name in named))


def missing_steps(connection: sqlite3.Connection, path: Path) -> list[Migration]:
    """The steps that lead from the schema of a file to that of this release; all of an empty file.

    Raises:
        StoreUnavailable: it is not a store, or no steps lead there.
    """
    if _is_empty(connection):
        return [*migrations()]
    version = _number(connection, queries.USER_VERSION)
    if (problem := mismatch(connection, path)) and not _can_migrate(connection, version):
        raise StoreUnavailable(problem)
    return [each for each in migrations() if each.version > version]


def take_step(connection: sqlite3.Connection, path: Path) -> Migration | None:
    """Take the first missing step in a transaction; None if there is none.

    Raises:
        StoreUnavailable: the file is not a store, or no steps lead to this release.
    """
    with _transaction(connection):
        for migration in missing_steps(connection, path):
            _apply(connection, migration)
            return migration
    return None


def _apply(connection: sqlite3.Connection, migration: Migration) -> None:
    """Execute the file of a step inside a transaction, and note its version."""
    text = _SCHEMA.joinpath(f"{migration.version:04}_{migration.name}.sql").read_text("utf-8")
    statement = ""
    for line in text.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            connection.execute(statement)
            statement = ""
    connection.execute(queries.SET_APPLICATION)
    connection.execute(queries.SET_VERSION.format(version=migration.version))


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


def _is_ours(connection: sqlite3.Connection, path: Path) -> bool:
    """Whether the file has our schema; False if it is empty, an error otherwise."""
    if _is_empty(connection):
        return False
    if problem := mismatch(connection, path):
        raise StoreUnavailable(problem)
    return True


def _is_empty(connection: sqlite3.Connection) -> bool:
    application = _number(connection, queries.APPLICATION_ID)
    version = _number(connection, queries.USER_VERSION)
    return not (application or version) and bool(_number(connection, queries.IS_EMPTY))


def _can_migrate(connection: sqlite3.Connection, version: int) -> bool:
    is_ours = _number(connection, queries.APPLICATION_ID) == queries.APPLICATION
    return is_ours and migrations()[0].version <= version <= queries.VERSION


def mismatch(connection: sqlite3.Connection, path: Path) -> str:
    """Why the file cannot be used, if its schema is not that of this release."""
    version = _number(connection, queries.USER_VERSION)
    if _number(connection, queries.APPLICATION_ID) != queries.APPLICATION:
        return f"{str(path)!r} is a database of another program. Choose another file for the store."
    if version == queries.VERSION:
        return ""
    is_later = version > queries.VERSION
    if _can_migrate(connection, version):
        remedy = "Back it up, and update it with `turnloom store migrate`."
    else:
        remedy = "Use that release, or choose another file for the store."
    return (
        f"{str(path)!r} was written by {'a later' if is_later else 'an earlier'} release of "
        f"Turnloom (schema {version}; this release uses {queries.VERSION}). {remedy}"
    )


def _number(connection: sqlite3.Connection, query: str) -> int:
    return connection.execute(query).fetchone()[0]
