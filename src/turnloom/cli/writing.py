"""Files that commands write: whole, or not at all."""

import os

from turnloom.errors import UsageError


def check_target(path: str) -> None:
    """Refuse a path that cannot be a file, before the work begins.

    Raises:
        UsageError: it is a folder, or in none.
    """
    if os.path.isdir(path) or not os.path.basename(path):
        raise UsageError(f"{path!r} is a folder. Name a file in it.")
    folder = os.path.dirname(path) or "."
    if not os.path.isdir(folder):
        raise UsageError(f"Folder {folder!r} does not exist. Make it, or name another file.")


def write_file(path: str, text: str) -> None:
    """Write a file, or replace it as a whole; a device or a pipe is written to.

    Raises:
        UsageError: it cannot be written; what was there is unchanged.
    """
    try:
        if os.path.exists(path) and not os.path.isfile(path):
            _write(path, text, "w")
        else:
            _replace(os.path.realpath(path), text)
    except OSError as error:
        raise UsageError(f"Cannot write {path!r}: {error.strerror}.") from error


def _replace(path: str, text: str) -> None:
    folder, name = os.path.split(path)
    fresh = os.path.join(folder, f".{name}.{os.getpid()}")
    try:
        _write(fresh, text, "x")
        os.replace(fresh, path)
    finally:
        if os.path.exists(fresh):
            os.unlink(fresh)


def _write(path: str, text: str, mode: str) -> None:
    with open(path, mode, encoding="utf-8", newline="") as file:
        file.write(text)
