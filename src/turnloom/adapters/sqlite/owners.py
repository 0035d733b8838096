"""Who drives: one locked file per open store, so that the lock ends when its process does."""

import fcntl
import os
import re
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path
from weakref import WeakSet

from turnloom.errors import StoreUnavailable

# What owners are called: the process, and what tells its stores apart. A name comes out of a file
# that somebody else may have written, and is part of a path.
_NAME = re.compile(r"\d+-\w+")

# The owners of this process.
_owners: "WeakSet[Owner]" = WeakSet()


class Owner:
    """This store among those that drive runs of one file: a lock that lasts until it is closed."""

    def __init__(self, folder: Path) -> None:
        """Take a lock of our own.

        Raises:
            StoreUnavailable: the lock file cannot be made.
        """
        try:
            self._path, self._file = _take_lock(folder)
        except OSError as error:
            raise StoreUnavailable(
                f"No lock file can be made in {str(folder)!r}: {error.strerror}. "
                "Runs are driven only under a lock; make the folder writable or free some space."
            ) from error
        self.name = self._path.name
        _watch_forks()
        _owners.add(self)

    def close(self) -> None:
        """Let go of everything that is held under this name."""
        _owners.discard(self)
        self._path.unlink(missing_ok=True)
        os.close(self._file)

    def part(self) -> None:
        """Leave the lock to the process that took it: this one is a child of it."""
        os.close(self._file)


@cache
def _watch_forks() -> None:
    """Let children part from the locks of their parent, which would outlive it with them."""
    os.register_at_fork(after_in_child=_part)


def _part() -> None:
    for owner in list(_owners):
        owner.part()
    _owners.clear()


def is_alive(folder: Path, name: str) -> bool:
    """Whether the owner of that name still holds its lock; the file of a dead one is removed."""
    if not _NAME.fullmatch(name):
        return False  # no owner is called that
    path = folder / name
    try:
        file = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return False
    except PermissionError:
        return _is_running(pid_of(name))  # the folder of another user: the lock cannot be tried
    try:
        # Shared, so that two who look at once do not take each other for the owner.
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        with suppress(PermissionError):  # another user's file may have to stay
            path.unlink(missing_ok=True)
    except BlockingIOError:
        return True
    finally:
        os.close(file)
    return False


def _is_running(pid: str) -> bool:
    """Whether there is a process of that number, whoever started it."""
    try:
        os.kill(int(pid), 0)
    except PermissionError:
        return True
    except (ProcessLookupError, OverflowError):
        return False
    return True


def pid_of(name: str) -> str:
    """The process that an owner's name tells."""
    return name.partition("-")[0]


def sweep(folder: Path, own: str) -> list[str]:
    """Remove the files of dead owners, and give their names."""
    found = [entry.name for entry in folder.iterdir() if entry.name != own]
    names = [name for name in found if _NAME.fullmatch(name)]
    return [name for name in names if not is_alive(folder, name)]


def _take_lock(folder: Path) -> tuple[Path, int]:
    while True:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        file, name = tempfile.mkstemp(prefix=f"{os.getpid()}-", dir=folder)
        fcntl.flock(file, fcntl.LOCK_EX)
        os.fchmod(file, 0o644)  # it is empty: whoever may enter the folder may try the lock
        # Somebody who swept between these two lines has removed the file: make another.
        if os.fstat(file).st_nlink:
            return Path(name), file
        os.close(file)
