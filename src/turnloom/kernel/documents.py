"""Parsed declaration files with the position of each value, and the workflow folder."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from turnloom.kernel.values import as_array, as_object

Path = tuple[str | int, ...]

# The paths in a document of parts of another one that is made from it, innermost first: a key that
# is not found at the first is looked for at the next.
Origins = Mapping[Path, tuple[Path, ...]]


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

    def rewritten(
        self, value: Any, origins: Origins, words: Mapping[str, Sequence[str]]
    ) -> "DeclarationFile":
        """The document with another value, whose parts are at the positions of what they come from:
        by `origins`, or by the same key, or by one of its other `words`."""
        places: dict[Path, Place] = {}
        waiting: list[tuple[Path, Any, tuple[Path, ...]]] = [((), value, ((),))]
        while waiting:
            path, part, olds = waiting.pop()
            places[path] = self.place(olds[0])
            for key, inner in _parts(part):
                own = (*path, key)
                found = (self._meant(old, key, inner, words.get(str(key), ())) for old in olds)
                first = next((old for old in found if old is not None), None)
                chain = (first, *olds) if first is not None else olds
                waiting.append((own, inner, origins.get(own, chain)))
        return replace(self, value=value, places=places)

    def _meant(self, path: Path, key: str | int, value: Any, words: Sequence[str]) -> Path | None:
        """The path below another one that stands for a key with a value."""
        inside = self._at(path)
        items, mapping = as_array(inside), as_object(inside) or {}
        if items is None:
            word = next((word for word in (key, *words) if word in mapping), None)
            return None if word is None else (*path, word)
        if not isinstance(key, int) or (key < len(items) and items[key] == value):
            return (*path, key) if isinstance(key, int) else None
        same = next((number for number, item in enumerate(items) if item == value), key)
        return (*path, same) if same < len(items) else None

    def _at(self, path: Path) -> Any:
        """The value at a path; None if there is none."""
        at = self.value
        for step in path:
            items, mapping = as_array(at), as_object(at) or {}
            if items is not None:
                at = items[step] if isinstance(step, int) and step < len(items) else None
            else:
                at = mapping.get(step) if isinstance(step, str) else None
        return at

    def line_of(self, value: Any, *keys: str, start: int = 1) -> int:
        """The first line at or after `start` with one of the keys and this value; `start` if there
        is none."""
        named = ((path, place.line) for path, place in self.places.items() if path[-1:])
        lines = (line for path, line in named if path[-1] in keys and self._at(path) == value)
        return min((line for line in lines if line >= start), default=start)


def _parts(value: Any) -> Iterator[tuple[str | int, Any]]:
    """The entries of an object or an array, by key or number."""
    mapping = as_object(value)
    yield from mapping.items() if mapping is not None else enumerate(as_array(value) or ())


@dataclass(frozen=True, slots=True)
class Folder:
    """A workflow folder: its documents by part, and the digest of each code file by its path."""

    name: str
    root: str
    documents: Mapping[str, DeclarationFile]
    code: Mapping[str, str]
