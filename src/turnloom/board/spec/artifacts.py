"""A typed thing on the board, who took it, and some of them as they are read."""

from collections.abc import Iterable, Set
from datetime import UTC, datetime

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import force_setattr

from turnloom.board.spec.values import Names, instant, name, names
from turnloom.board.spec.visibility import Public, Visibility, is_visibility
from turnloom.errors import InvalidArtifact
from turnloom.kernel.values import Json, is_name, preview


class Artifact(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Something that was made, with where it comes from and who may see it; never changed.
    `indexed` names the fields of the payload that stores index, and is left out where there are
    none."""

    id: str
    type: str
    payload: dict[str, Json]
    produced_by: str
    created_at: datetime
    correlation_id: str | None = None
    run: str | None = None
    parents: tuple[str, ...] = ()
    tags: Set[str] = frozenset()
    visibility: Visibility = Public()
    partition: str | None = None
    version: int = 1
    indexed: tuple[str, ...] | UnsetType = UNSET

    def __post_init__(self) -> None:
        optional = filter(None, (self.correlation_id, self.run, self.partition))
        if not all(map(is_name, (self.id, self.type, self.produced_by, *optional))):
            self._refuse_names()
        if getattr(self.created_at, "tzinfo", None) is not UTC:
            force_setattr(self, "created_at", instant(self.created_at, "Artifact.created_at"))
        if type(self.tags) is not Names:
            force_setattr(self, "tags", names(self.tags, "Artifact.tags"))
        if not is_visibility(self.visibility):
            raise InvalidArtifact(
                f"Artifact.visibility is {preview(self.visibility)}, which is none."
            )
        if type(self.parents) is not tuple:
            force_setattr(self, "parents", _names(self.parents, "Artifact.parents", "ids"))
        if type(self.indexed) is not tuple and self.indexed is not UNSET:
            force_setattr(self, "indexed", _names(self.indexed, "Artifact.indexed", "fields"))

    def _refuse_names(self) -> None:
        for field in ("id", "type", "produced_by"):
            name(getattr(self, field), f"Artifact.{field}")
        for field in ("correlation_id", "run", "partition"):
            if value := getattr(self, field):
                name(value, f"Artifact.{field}")


def _names(given: Iterable[str], what: str, of: str) -> tuple[str, ...]:
    if isinstance(given, str):
        raise InvalidArtifact(f"{what} is {preview(given)}. Give a tuple of {of}.")
    return tuple(given)


class Consumption(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An agent's subscription took an artifact into a turn of a run; once for each such turn."""

    artifact: str
    agent: str
    subscription: str
    run: str
    turn: int
    at: datetime

    def __post_init__(self) -> None:
        for field in ("artifact", "agent", "subscription", "run"):
            name(getattr(self, field), f"Consumption.{field}")
        force_setattr(self, "at", instant(self.at, "Consumption.at"))


class Envelope(Artifact, frozen=True, kw_only=True):
    """An artifact together with who took it, the oldest taking first."""

    consumptions: tuple[Consumption, ...] = ()


class Page(msgspec.Struct, frozen=True):
    """Some of the artifacts that were asked for, how many there are in all if that was asked too,
    and where to go on if there are more."""

    items: tuple[Artifact, ...]
    total: int | None = None
    cursor: str | None = None


class BoardSummary(msgspec.Struct, frozen=True, kw_only=True):
    """How many artifacts there are, in all and by what they are; by the kind of visibility too. One
    with several tags counts under each."""

    total: int
    by_type: dict[str, int]
    by_producer: dict[str, int]
    by_visibility: dict[str, int]
    by_tag: dict[str, int]
