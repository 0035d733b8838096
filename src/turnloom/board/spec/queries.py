"""Filters, the read handle of a board, and the values exchanged with stores."""

from collections.abc import AsyncIterator, Iterable, Sequence, Set
from datetime import datetime
from typing import Annotated, Any, Literal, NamedTuple, Protocol, Self, cast

import msgspec
from msgspec import UNSET, UnsetType
from pydantic import AfterValidator, BeforeValidator, Field, JsonValue, Strict

from turnloom.board.spec.artifacts import Artifact, BoardSummary, instant
from turnloom.kernel.models import Declared
from turnloom.kernel.values import Json, kind_of, preview

# Maximum names per set and values per `in`, and maximum conditions per filter.
MOST_NAMES = 1000
MOST_CONDITIONS = 100
# Maximum visible artifacts that one page compares with its filter.
MOST_COMPARED = 5_000

Operator = Literal["eq", "ne", "lt", "le", "gt", "ge", "in", "contains", "exists"]

# The types of values that an operator accepts, if restricted.
_FITTING: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("lt", "le", "gt", "ge"), ("integer", "number", "string")),
    "in": ("array",),
    "exists": ("boolean",),
}


def _sensible(where: tuple[str, Operator, Any]) -> tuple[str, Operator, Any]:
    path, operator, value = where
    if not all(path.split(".")):
        raise ValueError(
            f"Invalid path {path!r}. Write names separated by dots, as in 'price.amount'."
        )
    fitting = _FITTING.get(operator)
    if fitting and kind_of(value) not in fitting:
        raise ValueError(
            f"{operator!r} at {path!r} needs {' or '.join(fitting)}, not {preview(value)}. "
            "Correct the value."
        )
    if isinstance(value, list) and len(cast(list[Any], value)) > MOST_NAMES:
        raise ValueError(f"{operator!r} at {path!r} has more than {MOST_NAMES} values. Split it.")
    return where


def _aware(value: object) -> datetime:
    """An instant from a datetime or an ISO 8601 text; numbers are rejected."""
    if not isinstance(value, str):
        return instant(value, "The time")
    try:
        return instant(datetime.fromisoformat(value), "The time")
    except ValueError as error:
        raise ValueError(
            f"Invalid time {value!r}. Write it with a time zone, as in '2026-01-31T12:00:00Z'."
        ) from error


# A path into the payload, an operator, and a value to compare with.
Where = Annotated[tuple[str, Operator, JsonValue], Strict(False), AfterValidator(_sensible)]

# A list in a file; a single text is rejected.
_Names = Annotated[Set[str], Strict(False), Field(max_length=MOST_NAMES)]
_Instant = Annotated[datetime, BeforeValidator(_aware)]


class TagFilter(Declared):
    """The tags that an artifact must have, any or all of them, and those it must not have."""

    include: _Names | None = None
    exclude: _Names = frozenset()
    match: Literal["any", "all"] = "any"


class FilterConfig(Declared):
    """Conditions on artifacts. Omitted conditions match everything; an empty set matches nothing.
    The time window includes both ends."""

    types: _Names | None = None
    tags: TagFilter | None = None
    produced_by: _Names | None = None
    correlation_id: str | None = None
    runs: _Names | None = None
    partition: str | None = None
    since: _Instant | None = None
    until: _Instant | None = None
    where: Annotated[Sequence[Where], Field(max_length=MOST_CONDITIONS), AfterValidator(tuple)] = ()
    limit: int | None = Field(default=None, ge=1)
    order: Literal["created_at", "-created_at"] = "created_at"


class ArtifactItems(tuple[Artifact, ...]):
    """Artifacts in order, and the cursor if there are more."""

    cursor: str | None

    def __new__(cls, artifacts: Iterable[Artifact] = (), cursor: str | None = None) -> Self:
        """Artifacts and the cursor after them."""
        items = super().__new__(cls, artifacts)
        items.cursor = cursor
        return items


class BoardHandle(Protocol):
    """A board as one reader sees it at the time of each call. Types may be simple names."""

    async def query_artifacts(
        self,
        filter: FilterConfig | None = None,
        *,
        embed_meta: bool = False,
        cursor: str | None = None,
        count: bool = False,
    ) -> tuple[ArtifactItems, int | None]:
        """One page of copies of the artifacts that match the filter, and the total if `count` is
        set.

        With `embed_meta` they are envelopes. A page compares a bounded number of artifacts, so it
        may have fewer than the limit, or none; if its items have a cursor, there may be more.

        Raises:
            UnknownType: the filter names an unknown or ambiguous type.
            UsageError: the cursor is invalid, or belongs to another filter or reader.
        """
        ...

    def iter_artifacts(
        self, filter: FilterConfig | None = None, *, embed_meta: bool = False
    ) -> AsyncIterator[Artifact]:
        """Copies of all artifacts that match the filter, read page by page; the limit counts all of
        them. With `embed_meta` they are envelopes.

        Raises:
            UnknownType: the filter names an unknown or ambiguous type.
        """
        ...

    async def get(self, id: str) -> Artifact | None:
        """A copy of the artifact with this id; None if the reader may see none."""
        ...

    async def summary(self, filter: FilterConfig | None = None) -> BoardSummary:
        """Counts of the artifacts that match the filter.

        Raises:
            UnknownType: the filter names an unknown or ambiguous type.
        """
        ...


# The position of an artifact on its board: microseconds, and its arrival number, from 1.
Position = tuple[int, int]


class ArtifactRow(NamedTuple):
    """A tenant's artifact to store. `at` and `opens` are microseconds, `shared` makes it visible to
    other tenants, and `terms` are its index terms."""

    tenant: str
    id: str
    at: int
    opens: int | None
    shared: bool
    visibility: str
    data: str
    terms: tuple[int, ...]


class StoredArtifact(NamedTuple):
    """A stored artifact: its position on the board, its tenant, and its two texts."""

    at: int
    n: int
    tenant: str
    visibility: str
    data: str


class ArtifactContent(msgspec.Struct):
    """The data of a row: an artifact without its visibility, not validated again."""

    id: str
    type: str
    payload: dict[str, Json]
    produced_by: str
    created_at: datetime
    correlation_id: str | None
    run: str | None
    parents: tuple[str, ...]
    tags: Set[str]
    partition: str | None
    version: int
    indexed: tuple[str, ...] | UnsetType = UNSET


class ArtifactTraits(msgspec.Struct, array_like=True):
    """The properties by which artifacts are counted; written as an array."""

    type: str
    produced_by: str
    tags: tuple[str, ...]


class ArtifactCount(NamedTuple):
    """The number of rows with one visibility and the same traits. `traits` is the text of
    `ArtifactTraits`, or the data of a row where a store cannot extract them."""

    visibility: str
    traits: str
    number: int


class Branch(NamedTuple):
    """A search in one scope: entries with one of `leads`, a term from each of `groups`, and none of
    `excluded`."""

    leads: tuple[int, ...]
    groups: tuple[tuple[int, ...], ...]
    excluded: tuple[int, ...]


class IndexPlan(NamedTuple):
    """A search plan: its branches, exclusive bounds, direction, time and tenant. It finds the
    tenant's artifacts that open by `opened`, and shared ones that are open now. No two branches
    find the same artifact."""

    branches: tuple[Branch, ...]
    low: Position
    high: Position
    newest_first: bool
    now: int
    tenant: str
    opened: int

    def behind(self, position: Position) -> "IndexPlan":
        """The rest of the plan after a position, in its direction."""
        if self.newest_first:
            return self._replace(high=min(self.high, position))
        return self._replace(low=max(self.low, position))


class IndexStretch(NamedTuple):
    """Consecutive rows of a plan. `end` is the position to continue behind, or none at the end of
    the plan; rows between the last one and `end` do not fit the plan."""

    rows: Sequence[StoredArtifact]
    end: Position | None
