"""How a filter is answered from an index of terms."""

from collections.abc import Iterator, Sequence, Set
from datetime import datetime
from itertools import chain

from turnloom.board.logic.rows import microseconds
from turnloom.board.logic.terms import (
    EVERYTHING,
    Key,
    Scope,
    scopes_of,
    tagged,
    term,
    typed,
    valued,
)
from turnloom.board.spec import FilterConfig, Reader
from turnloom.board.spec.index import Branch, Plan, Position
from turnloom.kernel.values import as_array

# Before and behind every position, within 64 bits.
BEGINNING: Position = (-(2**62), 0)
END: Position = (2**62, 0)
# How many values of fields are looked up for a condition; with more, each artifact is compared.
MOST_VALUES = 100


class Outline:
    """A filter in terms, scope by scope of a reader: each of its groups needs one."""

    def __init__(self, filter: FilterConfig, reader: Reader) -> None:
        self._filter = filter
        self._reader = reader
        self._scopes = scopes_of(reader)
        self._groups = tuple(_groups(filter)) or ((EVERYTHING,),)

    @property
    def decided(self) -> bool:
        """Whether there is at most one way to look: one group, or one that nothing can be in."""
        return len(self._groups) == 1 or not all(self._groups)

    def groups(self) -> list[tuple[int, ...]]:
        """The terms of each group in the first scope, then in the next one, and so on."""
        return [
            tuple(term(scope, fact) for fact in group)
            for scope in self._scopes
            for group in self._groups
        ]

    def plan(self, weights: Sequence[int] | None, now: datetime) -> Plan:
        """Look in each scope by the group with the fewest entries and check the others; not at all
        where a group has none. The weights are those of `groups`, if there is a choice."""
        filter, size, groups = self._filter, len(self._groups), self.groups()
        branches: list[Branch] = []
        for first, scope in zip(range(0, len(groups), size), self._scopes, strict=True):
            here = groups[first : first + size]
            weighed = weights[first : first + size] if weights else list(map(len, here))
            if all(weighed):
                leads = here.pop(weighed.index(min(weighed)))
                branches.append(Branch(leads, tuple(here), self._excluded(scope)))
        low = BEGINNING if filter.since is None else (microseconds(filter.since), 0)
        # Numbers begin with 1, so this is behind everything of that microsecond.
        high = END if filter.until is None else (microseconds(filter.until) + 1, 0)
        newest_first = filter.order == "-created_at"
        at = microseconds(now)
        opened = END[0] if self._reader.role == "developer" else at
        tenant = self._reader.tenant
        return Plan(tuple(branches), low, high, newest_first, now=at, tenant=tenant, opened=opened)

    def _excluded(self, scope: Scope) -> tuple[int, ...]:
        tags = self._filter.tags
        return tuple(term(scope, ("tag", tag)) for tag in sorted(tags.exclude)) if tags else ()


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
        # What has a value in a field of a type is of that type.
        yield from tuple(_valued(filter)) or (_typed(filter.types),)


def _typed(types: Set[str]) -> tuple[Key, ...]:
    return tuple(chain.from_iterable(map(typed, sorted(types))))


def _valued(filter: FilterConfig) -> Iterator[tuple[Key, ...]]:
    """One group for each condition that a field of these types equals a simple value."""
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
    """Tags by themselves, or each with each type: that the two are often asked for together is
    worth an entry that says both."""
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
