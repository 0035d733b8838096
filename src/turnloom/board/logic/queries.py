"""Query plans for the term index, cursors, envelopes and counts."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence, Set
from datetime import datetime
from itertools import chain

import msgspec

from turnloom.board.logic.rows import (
    EVERYTHING,
    Key,
    Scope,
    microseconds,
    scopes_of,
    tagged,
    term,
    typed,
    valued,
)
from turnloom.board.spec import (
    Artifact,
    BoardSummary,
    Consumption,
    Envelope,
    FilterConfig,
    Reader,
    Visibility,
)
from turnloom.board.spec.queries import (
    ArtifactContent,
    ArtifactTraits,
    Branch,
    IndexPlan,
    Position,
)
from turnloom.errors import UsageError
from turnloom.kernel.digests import chain_digest
from turnloom.kernel.values import as_array

# Before and after every position, within 64 bits.
BEGINNING: Position = (-(2**62), 0)
END: Position = (2**62, 0)
# Maximum field values looked up per condition; beyond that, each artifact is compared.
MOST_VALUES = 100


class Outline:
    """A filter as groups of terms, for each scope of a reader; an artifact needs a term of every
    group."""

    def __init__(self, filter: FilterConfig, reader: Reader) -> None:
        self._filter = filter
        self._reader = reader
        self._scopes = scopes_of(reader)
        self._groups = tuple(_groups(filter)) or ((EVERYTHING,),)

    @property
    def decided(self) -> bool:
        """Whether the plan is determined: there is one group, or an empty one."""
        return len(self._groups) == 1 or not all(self._groups)

    def groups(self) -> list[tuple[int, ...]]:
        """The terms of each group, scope by scope."""
        return [
            tuple([term(scope, fact) for fact in group])
            for scope in self._scopes
            for group in self._groups
        ]

    def plan(self, weights: Sequence[int] | None, now: datetime) -> IndexPlan:
        """Search each scope by the group with the fewest entries and check the others; skip scopes
        where a group has none. `weights` are those of `groups`, if there is a choice."""
        filter = self._filter
        branches = self._only_branches() if weights is None else self._lightest_branches(weights)
        low = BEGINNING if filter.since is None else (microseconds(filter.since), 0)
        # Numbers start at 1, so this is after everything of that microsecond.
        high = END if filter.until is None else (microseconds(filter.until) + 1, 0)
        newest_first = filter.order == "-created_at"
        at = microseconds(now)
        opened = END[0] if self._reader.role == "developer" else at
        tenant = self._reader.tenant
        return IndexPlan(
            tuple(branches), low, high, newest_first, now=at, tenant=tenant, opened=opened
        )

    def _only_branches(self) -> list[Branch]:
        """A branch for each scope, if there is no choice of a group."""
        if not all(self._groups):
            return []
        leads = zip(self.groups(), self._scopes, strict=True)
        return [Branch(terms, (), self._excluded(scope)) for terms, scope in leads]

    def _lightest_branches(self, weights: Sequence[int]) -> list[Branch]:
        size, groups, branches = len(self._groups), self.groups(), list[Branch]()
        for first, scope in zip(range(0, len(groups), size), self._scopes, strict=True):
            here, weighed = groups[first : first + size], weights[first : first + size]
            if all(weighed):
                leads = here.pop(weighed.index(min(weighed)))
                branches.append(Branch(leads, tuple(here), self._excluded(scope)))
        return branches

    def _excluded(self, scope: Scope) -> tuple[int, ...]:
        tags = self._filter.tags
        return tuple(term(scope, ("tag", tag)) for tag in sorted(tags.exclude)) if tags else ()


def plan_newest(correlation: str, reader: Reader, now: datetime) -> IndexPlan:
    """Search everything of a correlation, newest first."""
    fact, at, tenant = ("correlation", correlation), microseconds(now), reader.tenant
    branches = [Branch((term(scope, fact),), (), ()) for scope in scopes_of(reader)]
    opened = END[0] if reader.role == "developer" else at
    return IndexPlan(tuple(branches), BEGINNING, END, True, now=at, tenant=tenant, opened=opened)


def _groups(filter: FilterConfig) -> Iterator[tuple[Key, ...]]:
    if filter.correlation_id is not None:
        yield (("correlation", filter.correlation_id),)
    if filter.runs is not None:
        yield _each("run", filter.runs)
    if filter.partition is not None:
        yield (("partition", filter.partition),)
    if filter.produced_by is not None:
        yield _each("producer", filter.produced_by)
    if filter.tags and filter.tags.include is not None:
        yield from _tagged(filter.tags.include, filter.tags.match, filter.types)
        yield from _valued(filter)
    elif filter.types is not None:
        # A term for a field value implies its type.
        yield from tuple(_valued(filter)) or (_typed(filter.types),)


def _typed(types: Set[str]) -> tuple[Key, ...]:
    return tuple(chain.from_iterable(map(typed, sorted(types))))


def _valued(filter: FilterConfig) -> Iterator[tuple[Key, ...]]:
    """A group for each condition that a field of these types equals a scalar."""
    types = sorted(filter.types or ())
    for path, operator, value in filter.where:
        values = as_array(value) if operator == "in" else [value]
        if operator not in ("eq", "in") or "." in path or not values:
            continue
        if len(types) * len(values) > MOST_VALUES:
            continue
        found = [valued(type, path, values) for type in types]
        if group := tuple(chain.from_iterable(each for each in found if each)):
            yield group


def _tagged(tags: Set[str], match: str, types: Set[str] | None) -> Iterator[tuple[Key, ...]]:
    """Tags alone, or combined with types: that combination is common enough for its own index
    term."""
    pairs = [_pairs(tag, types) for tag in sorted(tags)]
    if match == "all" and pairs:
        yield from pairs
    else:
        yield tuple(chain.from_iterable(pairs))


def _pairs(tag: str, types: Set[str] | None) -> tuple[Key, ...]:
    if types is None:
        return (("tag", tag),)
    return tuple(tagged(type, tag) for type in sorted(types))


def _each(kind: str, values: Set[str]) -> tuple[Key, ...]:
    return tuple((kind, value) for value in sorted(values))


_encode = msgspec.json.Encoder(order="deterministic").encode
_decode = msgspec.json.Decoder[tuple[str, int, str]](tuple[str, int, str]).decode


def write_cursor(filter: FilterConfig, reader: Reader, id: str, which: int) -> str:
    """The cursor after an artifact in the results of a filter for a reader."""
    return urlsafe_b64encode(_encode((id, which, _question(filter, reader)))).decode()


def read_cursor(filter: FilterConfig, reader: Reader, cursor: str) -> tuple[str, int]:
    """The artifact before a cursor, and its index among those with that id.

    Raises:
        UsageError: the cursor is invalid, or belongs to another filter or reader.
    """
    try:
        id, which, question = _decode(urlsafe_b64decode(cursor.encode()))
    except (Error, ValueError) as error:
        raise UsageError(
            f"Invalid cursor {cursor!r}. Pass the cursor of the previous page unchanged."
        ) from error
    if question != _question(filter, reader):
        raise UsageError(
            "The cursor belongs to another filter or reader. Only the limit may change between "
            "pages. Start again without a cursor."
        )
    return id, which


def _question(filter: FilterConfig, reader: Reader) -> str:
    asked = _encode(filter.model_dump(exclude={"limit"})).decode()
    return chain_digest(asked, reader.agent, reader.tenant, reader.role, *sorted(reader.labels))


_FIELDS = Artifact.__struct_fields__


def enclose(artifacts: Iterable[Artifact], consumptions: Iterable[Consumption]) -> list[Envelope]:
    """Each artifact with its consumptions, oldest first."""
    taken: defaultdict[str, list[Consumption]] = defaultdict(list)
    for consumption in sorted(consumptions, key=_order):
        taken[consumption.artifact].append(consumption)
    return [_envelope(artifact, taken[artifact.id]) for artifact in artifacts]


def _order(consumption: Consumption) -> tuple[datetime, str, int, str]:
    """The order of an artifact's consumptions in every store: by time, then by identity."""
    return (consumption.at, consumption.run, consumption.turn, consumption.subscription)


def _envelope(artifact: Artifact, consumptions: Iterable[Consumption]) -> Envelope:
    said = {name: getattr(artifact, name) for name in _FIELDS}
    return Envelope(**said, consumptions=tuple(consumptions))


class ArtifactCounts:
    """Running counts of artifacts."""

    def __init__(self) -> None:
        self._types: Counter[str] = Counter()
        self._producers: Counter[str] = Counter()
        self._visibilities: Counter[str] = Counter()
        self._tags: Counter[str] = Counter()

    def add(
        self, visibility: Visibility, traits: ArtifactTraits | ArtifactContent, count: int = 1
    ) -> None:
        """Count artifacts with one visibility and the same traits."""
        self._types[traits.type] += count
        self._producers[traits.produced_by] += count
        self._visibilities[kind_of(visibility)] += count
        for tag in traits.tags:
            self._tags[tag] += count

    @property
    def total(self) -> int:
        """The total count."""
        return self._types.total()

    def summary(self) -> BoardSummary:
        """All counts, by name."""
        return BoardSummary(
            total=self.total,
            by_type=_by_name(self._types),
            by_producer=_by_name(self._producers),
            by_visibility=_by_name(self._visibilities),
            by_tag=_by_name(self._tags),
        )


def kind_of(visibility: Visibility) -> str:
    """The kind of a visibility, as written."""
    return str(visibility.__struct_config__.tag)


def _by_name(counts: Counter[str]) -> dict[str, int]:
    return dict(sorted(counts.items()))
