"""What SQLite's errors mean to a person."""

import sqlite3
from pathlib import Path

from turnloom.errors import StoreUnavailable

_RESUME = "the run resumes where it stopped with `turnloom resume RUN`"
_MEANINGS = {
    sqlite3.SQLITE_FULL: f"The disk that holds {{path!r}} is full. Free some space; {_RESUME}.",
    sqlite3.SQLITE_IOERR: (
        "The disk refused to read or write {path!r} ({name}). Check the disk, its free space and "
        f"the limits on file size; {_RESUME}."
    ),
    sqlite3.SQLITE_READONLY: (
        "{path!r} cannot be written: the file or its folder is read-only. "
        f"Allow writing or choose another store; {_RESUME}."
    ),
    sqlite3.SQLITE_BUSY: (
        "{path!r} is locked by another process and stayed so for seconds. "
        f"End that process or wait until it is done; {_RESUME}."
    ),
    sqlite3.SQLITE_CORRUPT: (
        "{path!r} is damaged. Put a backup in its place, or save what can still be read with "
        "`sqlite3 FILE .recover`."
    ),
    sqlite3.SQLITE_NOTADB: (
        "{path!r} is not a database, so it is left alone. Choose another file for the store, "
        "or move this one away."
    ),
    sqlite3.SQLITE_CANTOPEN: (
        "{path!r} cannot be opened. It must be a file, not a folder, "
        "in a folder that exists and may be written."
    ),
}
_MEANINGS[sqlite3.SQLITE_LOCKED] = _MEANINGS[sqlite3.SQLITE_BUSY]
_MEANINGS[sqlite3.SQLITE_PERM] = _MEANINGS[sqlite3.SQLITE_READONLY]
_OTHER = f"The store {{path!r}} failed: {{error}}. When that is repaired, {_RESUME}."

# Errors that are about one write and not about the store: they spoil no other write.
PERSONAL = (sqlite3.IntegrityError, sqlite3.DataError)


def unavailable(error: Exception, path: Path) -> StoreUnavailable:
    """The error as a sentence with a remedy."""
    text = _MEANINGS.get(_primary(error), _OTHER)
    name = getattr(error, "sqlite_errorname", type(error).__name__)
    return StoreUnavailable(text.format(path=str(path), name=name, error=error))


def is_busy(error: BaseException) -> bool:
    """Whether another connection holds the lock, so that waiting may help."""
    return _primary(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def _primary(error: BaseException) -> int:
    """The result code without its extension; 0 when the error did not come from the library."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF
