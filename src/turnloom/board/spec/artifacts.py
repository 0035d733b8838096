"""Artifacts, their visibility, and the values they are made of."""

from collections.abc import Iterable, Iterator, Set
from datetime import UTC, datetime
from typing import Any, Literal, cast

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import force_setattr

from turnloom.errors import InvalidArtifact
from turnloom.kernel.values import Json, is_name, preview
from turnloom.log.spec import LOCAL


class Names(frozenset[str]):
    """A set of names that comes in the order of its names, so that what is written of it is the
    same in every process."""

    __slots__ = ()

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(super().__iter__()))


NONE = Names()


def instant(value: object, what: str) -> datetime:
    """The instant that a time names, in UTC.

    Raises:
        InvalidArtifact: it is no time, or does not say of which zone it is.
    """
    if not isinstance(value, datetime) or value.utcoffset() is None:
        raise InvalidArtifact(
            f"{what} is {preview(value)}, which names no instant. "
            "Give a datetime with a zone, as in datetime(2026, 1, 31, tzinfo=UTC)."
        )
    if value.tzinfo is UTC:
        return value
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise InvalidArtifact(f"{what} is {value!r}, which no calendar holds in UTC.") from None


def name(value: str, what: str) -> str:
    """A text that can name something.

    Raises:
        InvalidArtifact: it cannot.
    """
    if not is_name(value):
        raise InvalidArtifact(
            f"{what} is {preview(value)}. It must be a text that is not empty and holds no NUL and "
            "no half character."
        )
    return value


def names(values: Any, what: str) -> Names:
    """A set of names; one text is not taken for a set of letters.

    Raises:
        InvalidArtifact: it is no set, or something in it is no name.
    """
    if type(values) is Names:
        return values  # they were seen to be names when they were made
    if type(values) is frozenset and not values:
        return NONE
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise InvalidArtifact(f"{what} is {preview(values)}. Give a set, as in {{'name'}}.")
    return Names(name(value, f"One of {what}") for value in cast(Iterable[str], values))


class _Kind(msgspec.Struct, frozen=True, gc=False, tag_field="kind", forbid_unknown_fields=True):
    """What all kinds of visibility share: a tag, and nothing beside what they say."""


class Shared(_Kind, frozen=True, tag="shared"):
    """Everybody may see it, of every tenant. Only the program may publish it, not an agent."""


class Public(_Kind, frozen=True, tag="public"):
    """Everybody of its tenant may see it."""


class Private(_Kind, frozen=True, tag="private"):
    """The agents that are named may see it."""

    agents: Set[str]

    def __post_init__(self) -> None:
        force_setattr(self, "agents", _some(self.agents, "Private.agents"))


class Labelled(_Kind, frozen=True, tag="labelled"):
    """Whoever has all of these labels may see it."""

    labels: Set[str]

    def __post_init__(self) -> None:
        force_setattr(self, "labels", _some(self.labels, "Labelled.labels"))


class Tenant(_Kind, frozen=True, tag="tenant"):
    """Whoever belongs to this tenant may see it."""

    tenant_id: str

    def __post_init__(self) -> None:
        name(self.tenant_id, "Tenant.tenant_id")


class After(_Kind, frozen=True, tag="after"):
    """From an instant on, whoever `then` allows may see it; before, nobody."""

    at: datetime
    then: "Visibility" = Public()

    def __post_init__(self) -> None:
        force_setattr(self, "at", instant(self.at, "After.at"))
        if not is_visibility(self.then):
            raise InvalidArtifact(
                f"After.then is {self.then!r}, which is no visibility. "
                "Give a Shared, Public, Private, Labelled, Tenant or After."
            )


Visibility = Shared | Public | Private | Labelled | Tenant | After

# Who may see what was made of several things: whoever all of these admit. Nothing is everybody of
# the tenant.
Audience = tuple[Visibility, ...]


def is_visibility(value: object) -> bool:
    """Whether a value is one of the kinds of visibility that there are."""
    return isinstance(value, Shared | Public | Private | Labelled | Tenant | After)


def is_shared(visibility: object) -> bool:
    """Whether a visibility reaches other tenants, now or from an instant on."""
    while isinstance(visibility, After):
        visibility = visibility.then
    return isinstance(visibility, Shared)


# A user, like an agent, sees what visibilities allow; a developer sees all of the tenant.
Role = Literal["user", "developer"]


class Reader(msgspec.Struct, frozen=True):
    """Who is looking: an agent, its labels, its tenant and its role, as the program says."""

    agent: str = ""
    labels: Set[str] = frozenset()
    tenant: str = LOCAL
    role: Role = "user"

    def __post_init__(self) -> None:
        if self.role not in ("user", "developer"):
            raise InvalidArtifact(f"Reader.role is {self.role!r}. Use 'user' or 'developer'.")
        force_setattr(self, "labels", names(self.labels, "Reader.labels"))


def _some(values: Set[str], what: str) -> Names:
    found = names(values, what)
    if not found:
        raise InvalidArtifact(f"{what} is empty, so it would say nothing. Name at least one.")
    return found


class Artifact(msgspec.Struct, frozen=True, kw_only=True, gc=False, forbid_unknown_fields=True):
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


class Consumption(msgspec.Struct, frozen=True, kw_only=True, gc=False, forbid_unknown_fields=True):
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
