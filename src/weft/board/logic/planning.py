"""How a filter is answered from an index of terms."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from weft.board.logic.rows import microseconds
from weft.board.logic.terms import EVERYTHING, Key, scopes_of, term
from weft.board.spec import FilterConfig, Reader
from weft.board.spec.index import Branch, Plan, Position

# Before and behind every position, within 64 bits.
BEGINNING: Position = (-(2**62), 0)
END: Position = (2**62, 0)


class Outline:
    """A filter as facts of which each group must have one, the rarest probably coming first."""

    def __init__(self, filter: FilterConfig) -> None:
        self._filter = filter
        self.groups: tuple[tuple[Key, ...], ...] = tuple(_groups(filter)) or ((EVERYTHING,),)

    @property
    def hopeless(self) -> bool:
        """Whether nothing can match."""
        return not all(self.groups)

    def weights(self, reader: Reader) -> list[tuple[int, ...]]:
        """The terms of each group in all scopes of a reader: the more entries, the more work."""
        scopes = scopes_of(reader)
        return [
            tuple(term(scope, fact) for scope in scopes for fact in group) for group in self.groups
        ]

    def plan(self, lead: int, reader: Reader, now: datetime) -> Plan:
        """Look by the facts of one group, and check the others."""
        filter = self._filter
        low = BEGINNING if filter.since is None else (microseconds(filter.since), 0)
        # Numbers begin with 1, so this is behind everything of that microsecond.
        high = END if filter.until is None else (microseconds(filter.until) + 1, 0)
        branches = tuple(self._branch(scope, lead) for scope in scopes_of(reader))
        return Plan(branches, low, high, filter.order == "-created_at", microseconds(now))

    def _branch(self, scope: Key, lead: int) -> Branch:
        tags = self._filter.tags
        groups = [tuple(term(scope, fact) for fact in group) for group in self.groups]
        leads = groups.pop(lead)
        excluded = tuple(term(scope, ("tag", tag)) for tag in sorted(tags.exclude)) if tags else ()
        return Branch(leads, tuple(groups), excluded)


def _groups(filter: FilterConfig) -> Iterator[tuple[Key, ...]]:
    if filter.correlation_id is not None:
        yield (("correlation", filter.correlation_id),)
    if filter.runs is not None:
        yield _each("run", filter.runs)
    if filter.partition is not None:
        yield (("partition", filter.partition),)
    if filter.tags and filter.tags.include is not None:
        tags = _each("tag", filter.tags.include)
        if filter.tags.match == "any" or not tags:
            yield tags
        else:
            yield from ((tag,) for tag in tags)
    if filter.produced_by is not None:
        yield _each("producer", filter.produced_by)
    if filter.types is not None:
        yield _each("type", filter.types)


def _each(kind: str, values: frozenset[str]) -> tuple[Key, ...]:
    return tuple((kind, value) for value in sorted(values))


def lightest(weights: Sequence[int]) -> int:
    """The group with the fewest entries; the first of equals."""
    return min(range(len(weights)), key=weights.__getitem__)
