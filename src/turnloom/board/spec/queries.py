"""Filters, the reading handle of a board, and the queries that stores answer."""

from collections.abc import AsyncIterator, Iterable, Sequence, Set
from datetime import datetime
from typing import Annotated, Any, Literal, NamedTuple, Protocol, Self, cast

import msgspec
from msgspec import UNSET, UnsetType
from pydantic import AfterValidator, BeforeValidator, Field, JsonValue, Strict

from turnloom.board.spec.artifacts import Artifact, BoardSummary, instant
from turnloom.kernel.models import Declared
from turnloom.kernel.values import Json, kind_of, preview

# How many names a set of a filter has at most, how many values `in` has, and how many conditions
# there are.
MOST_NAMES = 1000
MOST_CONDITIONS = 100
# How many artifacts that the reader may see one page compares with its filter at most.
MOST_COMPARED = 5_000

Operator = Literal["eq", "ne", "lt", "le", "gt", "ge", "in", "contains", "exists"]

# What the value beside an operator must be, where not every value makes sense.
_FITTING: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("lt", "le", "gt", "ge"), ("integer", "number", "string")),
    "in": ("array",),
    "exists": ("boolean",),
}


def _sensible(where: tuple[str, Operator, Any]) -> tuple[str, Operator, Any]:
    path, operator, value = where
    if not all(path.split(".")):
        raise ValueError(
            f"{path!r} leads nowhere. Write names with dots between them, as in 'price.amount'."
        )
    fitting = _FITTING.get(operator)
    if fitting and kind_of(value) not in fitting:
        raise ValueError(
            f"{operator!r} at {path!r} needs {' or '.join(fitting)}, not {preview(value)}. "
            "Correct the value."
        )
    if isinstance(value, list) and len(cast(list[Any], value)) > MOST_NAMES:
        raise ValueError(f"{operator!r} at {path!r} has more than {MOST_NAMES} values.")
    return where


def _aware(value: object) -> datetime:
    """An instant out of a datetime or ISO 8601; a bare number is neither."""
    if not isinstance(value, str):
        return instant(value, "The time")
    try:
        return instant(datetime.fromisoformat(value), "The time")
    except ValueError as error:
        raise ValueError(
            f"{value!r} names no instant. Write one with a zone, as in '2026-01-31T12:00:00Z'."
        ) from error


# A path into the payload, an operator, and what to compare with.
Where = Annotated[tuple[str, Operator, JsonValue], Strict(False), AfterValidator(_sensible)]

# What is said as a list in a file; one text is not a set of letters.
_Names = Annotated[Set[str], Strict(False), Field(max_length=MOST_NAMES)]
_Instant = Annotated[datetime, BeforeValidator(_aware)]


class TagFilter(Declared):
    """Which tags an artifact must have, any or all of them, and which it must not have."""

    include: _Names | None = None
    exclude: _Names = frozenset()
    match: Literal["any", "all"] = "any"


class FilterConfig(Declared):
    """What an artifact must be to be found. What is left out asks nothing; an empty set finds
    nothing. The window includes both of its ends."""

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
    """Artifacts in order, and where to go on if there are more."""

    cursor: str | None

    def __new__(cls, artifacts: Iterable[Artifact] = (), cursor: str | None = None) -> Self:
        """Some artifacts and the cursor behind them."""
        items = super().__new__(cls, artifacts)
        items.cursor = cursor
        return items


class BoardHandle(Protocol):
    """A board as one reader sees it at the moment of each call. Types may be simple names."""

    async def query_artifacts(
        self,
        filter: FilterConfig | None = None,
        *,
        embed_meta: bool = False,
        cursor: str | None = None,
        count: bool = False,
    ) -> tuple[ArtifactItems, int | None]:
        """One page of copies of what the filter asks for, and how many there are in all if `count`
        asks for it. With `embed_meta` they are envelopes. A page compares a bounded number of
        artifacts, so it may hold fewer than the limit, or none; while its items have a cursor,
        there may be more behind it.

        Raises:
            UnknownType: the filter names a type that is not known, or a simple name of several.
            UsageError: the cursor is none, or belongs to another filter or reader.
        """
        ...

    def iter_artifacts(
        self, filter: FilterConfig | None = None, *, embed_meta: bool = False
    ) -> AsyncIterator[Artifact]:
        """Copies of all that the filter asks for, read page by page; a limit counts all of them.
        With `embed_meta` they are envelopes.

        Raises:
            UnknownType: the filter names a type that is not known, or a simple name of several.
        """
        ...

    async def get(self, id: str) -> Artifact | None:
        """The artifact of this id as a copy; none if there is none to be seen."""
        ...

    async def summary(self, filter: FilterConfig | None = None) -> BoardSummary:
        """How many there are, in all and of what, of all that the filter asks for.

        Raises:
            UnknownType: the filter names a type that is not known, or a simple name of several.
        """
        ...


# The place of an artifact in the order of its board: microseconds, and the number it came with,
# which is at least 1.
Position = tuple[int, int]


class ArtifactRow(NamedTuple):
    """An artifact of a tenant to be kept. `digest` tells its content from another under the same
    id, `at` and `opens` are microseconds, `shared` says that other tenants find it too, and `terms`
    are what it is found by."""

    tenant: str
    id: str
    digest: str
    at: int
    opens: int | None
    shared: bool
    visibility: str
    data: str
    terms: tuple[int, ...]


class StoredArtifact(NamedTuple):
    """An artifact that is kept: its place in the order of the board, whose it is, and its two
    texts."""

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
    """What to look for in one scope: entries of one of `leads`, of which each has a term of every
    one of `groups` and none that is `excluded`."""

    leads: tuple[int, ...]
    groups: tuple[tuple[int, ...], ...]
    excluded: tuple[int, ...]


class IndexPlan(NamedTuple):
    """Where to look, strictly between which positions, in which direction, as of when, and for
    which tenant: it finds its own artifacts that open by `opened`, and what is shared and open now.
    No two branches find the same artifact."""

    branches: tuple[Branch, ...]
    low: Position
    high: Position
    newest_first: bool
    now: int
    tenant: str
    opened: int

    def behind(self, position: Position) -> "IndexPlan":
        """The same behind a position, in the direction of the plan."""
        if self.newest_first:
            return self._replace(high=min(self.high, position))
        return self._replace(low=max(self.low, position))


class IndexStretch(NamedTuple):
    """Consecutive rows of a plan. `end` is the position to continue behind, or none at the end of
    the plan; rows between the last one and `end` do not fit the plan."""

    rows: Sequence[StoredArtifact]
    end: Position | None
