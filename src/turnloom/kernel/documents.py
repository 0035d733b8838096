"""Parsed declaration files that still know where each value stood, and the folder they make."""

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
    """One declaration file: its JSON value, its text, and the place of each value in it."""

    file: str
    value: Any
    text: str
    places: Mapping[Path, Place] = field(default_factory=dict[Path, Place])

    def place(self, path: Path) -> Place:
        """Where the value at `path` stands, or the nearest enclosing one that is known."""
        while path and path not in self.places:
            path = path[:-1]
        return self.places.get(path, Place(1))

    def line_of(self, key: str, value: Any, start: int = 1) -> int:
        """The first line from `start` on that says `key: value`; `start` when none does."""
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
    """A workflow folder: its documents by part, the digest of each code file by relative path."""

    name: str
    root: str
    documents: Mapping[str, DeclarationFile]
    code: Mapping[str, str]
