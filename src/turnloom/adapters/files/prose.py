"""Files below a folder that hold texts for people to read."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

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


class Texts(NamedTuple):
    """What is below a folder, by paths inside it, in order: files of texts, and links, which are
    not followed. A folder that cannot be looked into is among the files: reading it says why."""

    files: list[str]
    links: list[str]


def texts_below(folder: str) -> Texts:
    """The files of texts below a folder, and the links that may be some; nothing hidden.

    Raises:
        UsageError: there is no such folder, or it cannot be looked into.
    """
    if not os.path.isdir(folder):
        raise UsageError(f"{folder!r} is not a folder. Name one that holds texts.")
    try:
        links: list[str] = []
        return Texts(sorted(_walk(Path(folder), Path(), links)), sorted(links))
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


def _walk(folder: Path, inside: Path, links: list[str]) -> Iterator[str]:
    with os.scandir(folder / inside) as entries:
        found = list(entries)
    for entry in found:
        if entry.name.startswith("."):
            continue
        is_text = Path(entry.name).suffix.lower() in FORMATS
        if entry.is_symlink():
            links += [(inside / entry.name).as_posix()] if is_text or entry.is_dir() else []
        elif entry.is_dir():
            yield from _inside(folder, inside / entry.name, links)
        elif entry.is_file() and is_text:
            yield (inside / entry.name).as_posix()


def _inside(folder: Path, inside: Path, links: list[str]) -> list[str]:
    try:
        return [*_walk(folder, inside, links)]
    except OSError:
        return [inside.as_posix()]
