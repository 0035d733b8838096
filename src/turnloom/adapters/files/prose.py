"""Text files below a folder: prose for people to read."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from turnloom.assembly.spec.retrieval import Format
from turnloom.errors import UsageError
from turnloom.variables.logic.paths import is_storable

# The suffixes of text files, and their formats.
FORMATS: dict[str, Format] = {
    ".txt": "text",
    ".text": "text",
    ".rst": "text",
    ".md": "markdown",
    ".markdown": "markdown",
}


class Texts(NamedTuple):
    """Text files and symbolic links below a folder, as sorted relative paths. Links are not
    followed. An unreadable folder is listed as a file, so that reading it reports the error."""

    files: list[str]
    links: list[str]


def texts_below(folder: str) -> Texts:
    """The visible text files below a folder, and links that may be text files.

    Raises:
        UsageError: the folder does not exist, or cannot be read.
    """
    if not os.path.isdir(folder):
        raise UsageError(f"{folder!r} is not a folder. Name a folder with text files.")
    try:
        links: list[str] = []
        return Texts(sorted(_walk(Path(folder), Path(), links)), sorted(links))
    except OSError as error:
        raise UsageError(
            f"Cannot read folder {folder!r}: {error.strerror}. Check its permissions."
        ) from error


def read_text(folder: str, path: str) -> tuple[str, Format]:
    """The content of a text file, and its format.

    Raises:
        OSError: the file cannot be read.
        ValueError: the file or its name is not UTF-8.
    """
    file = Path(folder, path)
    text = file.read_bytes().decode("utf-8-sig")
    if not is_storable(path + text):
        raise ValueError(f"{path!r} is not UTF-8 text.")
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
