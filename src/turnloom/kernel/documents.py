"""Parsed declaration files with the position of each value, and the workflow folder."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Place:
    """A position in a file, counted from 1."""

    line: int
    column: int = 1


@dataclass(frozen=True, slots=True)
class DeclarationFile:
    """One declaration file: its JSON value, its text, and the position of each value."""

    file: str
    value: Any
    text: str
    places: Mapping[Path, Place] = field(default_factory=dict[Path, Place])

    def place(self, path: Path) -> Place:
        """The position of the value at `path`, or of the nearest enclosing value that has one."""
        while path and path not in self.places:
            path = path[:-1]
        return self.places.get(path, Place(1))

    def below(self, key: str) -> "DeclarationFile":
        """The document that is the value of a key, at the same positions."""
        places = {path[1:]: place for path, place in self.places.items() if path[:1] == (key,)}
        return DeclarationFile(self.file, self.value[key], self.text, places)

    def line_of(self, key: str, value: Any, start: int = 1) -> int:
        """The first line at or after `start` with `key: value`; `start` if there is none."""
        found = (place.line for path, place in self.places.items() if self._says(path, key, value))
        return min((line for line in found if line >= start), default=start)

    def _says(self, path: Path, key: str, value: Any) -> bool:
        if not path or path[-1] != key:
            return False
        at = self.value
        for step in path:
            at = at[step]
        return at == value


@dataclass(frozen=True, slots=True)
class Folder:
    """A workflow folder: its documents by part, and the digest of each code file by its path."""

    name: str
    root: str
    documents: Mapping[str, DeclarationFile]
    code: Mapping[str, str]
