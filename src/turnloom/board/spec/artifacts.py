"""Artifacts, their visibility, and related values."""

from collections.abc import Iterable, Iterator, Set
from datetime import UTC, datetime
from typing import Any, Literal, TypeGuard, cast, get_args

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import force_setattr

from turnloom.errors import InvalidArtifact
from turnloom.kernel.values import Json, is_name, preview
from turnloom.log.spec import LOCAL


class Names(frozenset[str]):
    """A set of names with a fixed order, so that it is written identically in every process."""

    __slots__ = ()

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(super().__iter__()))


NONE = Names()


def instant(value: object, what: str) -> datetime:
    """A time in UTC.

    Raises:
        InvalidArtifact: it is not a datetime with a time zone.
    """
    if not isinstance(value, datetime) or value.utcoffset() is None:
        raise InvalidArtifact(
            f"{what} must be a datetime with a time zone, not {preview(value)}. "
            "Write datetime(2026, 1, 31, tzinfo=UTC)."
        )
    if value.tzinfo is UTC:
        return value
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise InvalidArtifact(f"{what} is {value!r}, which is out of range in UTC.") from None


def name(value: str, what: str) -> str:
    """A valid name.

    Raises:
        InvalidArtifact: it is not valid.
    """
    if not is_name(value):
        raise InvalidArtifact(
            f"{what} must be a non-empty text without NUL characters and lone surrogates, "
            f"not {preview(value)}."
        )
    return value


def names(values: Any, what: str) -> Names:
    """A set of names; a single text is rejected.

    Raises:
        InvalidArtifact: it is not a set, or contains an invalid name.
    """
    if type(values) is Names:
        return values  # checked when it was created
    if type(values) is frozenset and not values:
        return NONE
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise InvalidArtifact(f"{what} must be a set, not {preview(values)}. Write {{'name'}}.")
    return Names(name(value, f"One of {what}") for value in cast(Iterable[str], values))


class _Kind(msgspec.Struct, frozen=True, gc=False, tag_field="kind", forbid_unknown_fields=True):
    """Base of all kinds of visibility."""


class Shared(_Kind, frozen=True, tag="shared"):
    """Visible to everyone of every tenant. Only the program may publish it, not an agent."""


class Public(_Kind, frozen=True, tag="public"):
    """Visible to everyone of its tenant."""


class Private(_Kind, frozen=True, tag="private"):
    """Visible to the named agents."""

    agents: Set[str]

    def __post_init__(self) -> None:
        force_setattr(self, "agents", _some(self.agents, "Private.agents"))


class Labelled(_Kind, frozen=True, tag="labelled"):
    """Visible to readers with all of these labels."""

    labels: Set[str]

    def __post_init__(self) -> None:
        force_setattr(self, "labels", _some(self.labels, "Labelled.labels"))


class Tenant(_Kind, frozen=True, tag="tenant"):
    """Visible to readers of this tenant."""

    tenant_id: str

    def __post_init__(self) -> None:
        name(self.tenant_id, "Tenant.tenant_id")


class After(_Kind, frozen=True, tag="after"):
    """Visible to `then` from an instant on; hidden before."""

    at: datetime
    then: "Visibility" = Public()

    def __post_init__(self) -> None:
        force_setattr(self, "at", instant(self.at, "After.at"))
        if not is_visibility(self.then):
            raise InvalidArtifact(
                f"After.then must be a visibility, not {self.then!r}. Use {choice_of(KINDS)}."
            )


# Who may see something once it is open. Every `match` over these has no `case _`, so that the type
# checker names those that forget a kind.
OpenVisibility = Shared | Public | Private | Labelled | Tenant

Visibility = OpenVisibility | After

# Every kind of visibility.
KINDS: tuple[type, ...] = get_args(Visibility)

# The visibility of content made of several parts: readers that all of these admit. Empty means
# everyone of the tenant.
Audience = tuple[Visibility, ...]


def is_visibility(value: object) -> TypeGuard[Visibility]:
    """Whether a value is a visibility."""
    return isinstance(value, KINDS)


def choice_of(kinds: Iterable[type]) -> str:
    """Kinds of visibility, for an error."""
    *others, last = (kind.__name__ for kind in kinds)
    return f"{', '.join(others)} or {last}"


def is_shared(visibility: object) -> bool:
    """Whether a visibility reaches other tenants, now or later."""
    while isinstance(visibility, After):
        visibility = visibility.then
    return isinstance(visibility, Shared)


# A user, like an agent, sees what visibilities allow; a developer sees everything of the tenant.
Role = Literal["user", "developer"]


class Reader(msgspec.Struct, frozen=True):
    """The identity of a reader: agent, labels, tenant and role."""

    agent: str = ""
    labels: Set[str] = frozenset()
    tenant: str = LOCAL
    role: Role = "user"

    def __post_init__(self) -> None:
        if self.role not in ("user", "developer"):
            raise InvalidArtifact(f"Reader.role must be 'user' or 'developer', not {self.role!r}.")
        force_setattr(self, "labels", names(self.labels, "Reader.labels"))


def _some(values: Set[str], what: str) -> Names:
    found = names(values, what)
    if not found:
        raise InvalidArtifact(f"{what} is empty. Name at least one.")
    return found


class Artifact(msgspec.Struct, frozen=True, kw_only=True, gc=False, forbid_unknown_fields=True):
    """An immutable artifact with its provenance and visibility. `indexed` names the payload fields
    that stores index, and is omitted if there are none."""

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
            _refuse_names(self, "id", "type", "produced_by")
            given = [each for each in ("correlation_id", "run", "partition") if getattr(self, each)]
            _refuse_names(self, *given)
        if getattr(self.created_at, "tzinfo", None) is not UTC:
            force_setattr(self, "created_at", instant(self.created_at, "Artifact.created_at"))
        if type(self.tags) is not Names:
            force_setattr(self, "tags", names(self.tags, "Artifact.tags"))
        if not is_visibility(self.visibility):
            raise InvalidArtifact(
                f"Artifact.visibility must be a visibility, not {preview(self.visibility)}."
            )
        if type(self.parents) is not tuple:
            force_setattr(self, "parents", _names(self.parents, "Artifact.parents", "ids"))
        if type(self.indexed) is not tuple and self.indexed is not UNSET:
            force_setattr(self, "indexed", _names(self.indexed, "Artifact.indexed", "fields"))


def _refuse_names(of: msgspec.Struct, *fields: str) -> None:
    """Raise for the first field that is not a valid name."""
    for field in fields:
        name(getattr(of, field), f"{type(of).__name__}.{field}")


def _names(given: Iterable[str], what: str, of: str) -> tuple[str, ...]:
    if isinstance(given, str):
        raise InvalidArtifact(f"{what} must be a tuple of {of}, not {preview(given)}.")
    return tuple(given)


class Consumption(msgspec.Struct, frozen=True, kw_only=True, gc=False, forbid_unknown_fields=True):
    """The consumption of an artifact by an agent's subscription, once per turn of a run."""

    artifact: str
    agent: str
    subscription: str
    run: str
    turn: int
    at: datetime

    def __post_init__(self) -> None:
        if not all(map(is_name, (self.artifact, self.agent, self.subscription, self.run))):
            _refuse_names(self, "artifact", "agent", "subscription", "run")
        force_setattr(self, "at", instant(self.at, "Consumption.at"))


class Envelope(Artifact, frozen=True, kw_only=True):
    """An artifact with its consumptions, oldest first."""

    consumptions: tuple[Consumption, ...] = ()


class Page(msgspec.Struct, frozen=True):
    """A page of artifacts, the total if requested, and the cursor if there are more."""

    items: tuple[Artifact, ...]
    total: int | None = None
    cursor: str | None = None


class BoardSummary(msgspec.Struct, frozen=True, kw_only=True):
    """Counts of artifacts, in total and by type, producer, kind of visibility and tag. An artifact
    with several tags counts under each."""

    total: int
    by_type: dict[str, int]
    by_producer: dict[str, int]
    by_visibility: dict[str, int]
    by_tag: dict[str, int]
