"""What became of each entry of a file, and what was lost or guessed on the way."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from turnloom.kernel.values import Json, preview

Became = Literal["static", "environment", "database", "derived", "exposure", "unchanged", "lost"]

# Keys of older shapes that end here, with the reason.
_GONE = {
    "db_type": "the store is chosen in the settings",
    "refresh_strategy": "a value is read once, when the run starts",
    "persist": "every value of a run is in its log",
    "ui_hidden": "only a text of an agent can be hidden",
}


class Note(NamedTuple):
    """One entry of the input: what it was, what it became, what was lost, what was assumed."""

    where: str
    name: str
    was: str
    became: Became
    lost: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()


class Migrated(NamedTuple):
    """A file in today's shape, whether that is a change, and one note per entry of the input."""

    value: Json
    changed: bool
    notes: tuple[Note, ...]


@dataclass(slots=True)
class Remarks:
    """Sentences about one entry, collected while it is rewritten."""

    lost: list[str] = field(default_factory=list[str])
    assumed: list[str] = field(default_factory=list[str])

    def drop(self, rest: Mapping[str, Any], what: str) -> None:
        """Note every key that has no counterpart; a key without a value says nothing."""
        for key, value in rest.items():
            if value is not None and value != [] and value != {}:
                why = _GONE.get(key, "it has no counterpart")
                self.lost.append(f"Key {key!r} of {what} ({preview(value)}) is dropped: {why}.")
