"""Files below a folder that hold texts for people to read."""

import os
from collections.abc import Iterator
from pathlib import Path

from turnloom.assembly.spec.retrieval import Format
from turnloom.errors import UsageError
from turnloom.variables.logic.paths import is_storable

# How such files end, and how their texts are written.
FORMATS: dict[str, Format] = {
    ".txt": "text",
    ".text": "text",
    ".rst": "text",
    ".md": "markdown",
    ".markdown": "markdown",
}


def texts_below(folder: str) -> list[str]:
    """The files of texts below a folder, by their paths inside it, in order; nothing hidden, and no
    links. A folder inside that cannot be looked into stands there itself: reading it says why.

    Raises:
        UsageError: there is no such folder, or it cannot be looked into.
    """
    if not os.path.isdir(folder):
        raise UsageError(f"{folder!r} is not a folder. Name one that holds texts.")
    try:
        return sorted(_walk(Path(folder), Path()))
    except OSError as error:
        raise UsageError(
            f"Folder {folder!r} cannot be read: {error.strerror}. See to its permissions."
        ) from error


def read_text(folder: str, path: str) -> tuple[str, Format]:
    """The text of such a file, and how it is written.

    Raises:
        OSError: it cannot be read.
        ValueError: it, or its name, is not text in UTF-8.
    """
    file = Path(folder, path)
    text = file.read_bytes().decode("utf-8-sig")
    if not is_storable(path + text):
        raise ValueError(f"{path!r} is not text in UTF-8.")
    return text, FORMATS[file.suffix.lower()]


def _walk(folder: Path, inside: Path) -> Iterator[str]:
    with os.scandir(folder / inside) as entries:
        found = list(entries)
    for entry in found:
        if entry.name.startswith(".") or entry.is_symlink():
            continue
        if entry.is_dir():
            yield from _inside(folder, inside / entry.name)
        elif entry.is_file() and Path(entry.name).suffix.lower() in FORMATS:
            yield (inside / entry.name).as_posix()


def _inside(folder: Path, inside: Path) -> list[str]:
    try:
        return [*_walk(folder, inside)]
    except OSError:
        return [inside.as_posix()]
