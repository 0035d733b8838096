"""Messages with remedies for SQLite's errors."""

import sqlite3
from pathlib import Path

from turnloom.errors import StoreUnavailable

_RESUME = "then continue the run with `turnloom resume RUN`"
_MEANINGS = {
    sqlite3.SQLITE_FULL: f"The disk of {{path!r}} is full. Free some space; {_RESUME}.",
    sqlite3.SQLITE_IOERR: (
        "Cannot read or write {path!r} ({name}). Check the disk, its free space and the limits "
        f"on file size; {_RESUME}."
    ),
    sqlite3.SQLITE_READONLY: (
        "Cannot write {path!r}: the file or its folder is read-only. "
        f"Make it writable, or choose another store; {_RESUME}."
    ),
    sqlite3.SQLITE_BUSY: (
        "{path!r} was locked by another process for several seconds. "
        f"End that process, or wait until it is done; {_RESUME}."
    ),
    sqlite3.SQLITE_CORRUPT: (
        "{path!r} is damaged. Replace it with a backup, or recover its data with "
        "`sqlite3 FILE .recover`."
    ),
    sqlite3.SQLITE_NOTADB: (
        "{path!r} is not a database. Choose another file for the store, or move this one away."
    ),
    sqlite3.SQLITE_CANTOPEN: (
        "Cannot open {path!r}. It must be a file, not a folder, in an existing folder that is "
        "writable."
    ),
}
_MEANINGS[sqlite3.SQLITE_LOCKED] = _MEANINGS[sqlite3.SQLITE_BUSY]
_MEANINGS[sqlite3.SQLITE_PERM] = _MEANINGS[sqlite3.SQLITE_READONLY]
_OTHER = f"The store {{path!r}} failed: {{error}}. Repair it; {_RESUME}."

# Errors of a single write; they do not affect other writes.
WRITE_ERRORS = (sqlite3.IntegrityError, sqlite3.DataError)


def unavailable(error: Exception, path: Path) -> StoreUnavailable:
    """The error as a message with a remedy."""
    text = _MEANINGS.get(_primary(error), _OTHER)
    name = getattr(error, "sqlite_errorname", type(error).__name__)
    return StoreUnavailable(text.format(path=str(path), name=name, error=error))


def is_busy(error: BaseException) -> bool:
    """Whether another connection holds the lock, so that waiting may help."""
    return _primary(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def _primary(error: BaseException) -> int:
    """The primary result code; 0 if the error is not from SQLite."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF
