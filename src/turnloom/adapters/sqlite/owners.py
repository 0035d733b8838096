"""Who drives: one locked file per open store, so that the lock ends when its process does."""

import fcntl
import os
import tempfile
from pathlib import Path

from turnloom.errors import StoreUnavailable


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

    def close(self) -> None:
        """Let go of everything that is held under this name."""
        self._path.unlink(missing_ok=True)
        os.close(self._file)


def is_alive(folder: Path, name: str) -> bool:
    """Whether the owner of that name still holds its lock; the file of a dead one is removed."""
    path = folder / name
    try:
        file = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return False
    except PermissionError:
        return True  # another user's; whoever cannot look does not take
    try:
        # Shared, so that two who look at once do not take each other for the owner.
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        path.unlink(missing_ok=True)
    except BlockingIOError:
        return True
    finally:
        os.close(file)
    return False


def pid_of(name: str) -> str:
    """The process that an owner's name tells."""
    return name.partition("-")[0]


def sweep(folder: Path, own: str) -> list[str]:
    """Remove the files of dead owners, and give their names."""
    names = [entry.name for entry in folder.iterdir() if entry.name != own]
    return [name for name in names if not is_alive(folder, name)]


def _take_lock(folder: Path) -> tuple[Path, int]:
    while True:
        folder.mkdir(parents=True, exist_ok=True)
        file, name = tempfile.mkstemp(prefix=f"{os.getpid()}-", dir=folder)
        fcntl.flock(file, fcntl.LOCK_EX)
        # Somebody who swept between these two lines has removed the file: make another.
        if os.fstat(file).st_nlink:
            return Path(name), file
        os.close(file)
