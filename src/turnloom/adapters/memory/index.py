"""What artifacts in memory are found by."""

from bisect import bisect_left, bisect_right, insort
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from heapq import merge
from itertools import chain, groupby, islice

from turnloom.board.spec import Consumption
from turnloom.board.spec.index import Branch, Found, Plan, Position, Row
from turnloom.errors import ArtifactExists

# What tells two consumptions of one artifact apart.
Turn = tuple[str, str, int]


class MemoryIndex:
    """Artifacts as rows of text, so that whoever reads gets copies, and who took them."""

    def __init__(self) -> None:
        # The number of a row is its place in the list, counted from 1.
        self._rows: list[Row] = []
        self._numbers: dict[str, int] = {}
        self._entries: defaultdict[int, list[Position]] = defaultdict(list)
        self._openings: list[int] = []
        self._taken: defaultdict[str, dict[Turn, Consumption]] = defaultdict(dict)

    def keep(self, rows: Iterable[Row], consumptions: Iterable[Consumption] = ()) -> None:
        """Keep what is not there yet, all or none.

        Raises:
            ArtifactExists: a row is there with other content.
        """
        for row in [row for row in rows if self._is_missing(row)]:
            self._add(row)
        for each in consumptions:
            turn = (each.subscription, each.run, each.turn)
            self._taken[each.artifact].setdefault(turn, each)

    def openings(self, after: int) -> Iterator[int]:
        """The instants behind one at which something opens, soonest first, each once."""
        ahead = islice(self._openings, bisect_right(self._openings, after), None)
        return (number for number, _ in groupby(ahead))

    async def find(self, id: str) -> Found | None:
        """The row of an artifact."""
        number = self._numbers.get(id)
        return None if number is None else self._found((self._rows[number - 1].at, number))

    async def walk(self, plan: Plan, most: int) -> Sequence[Found]:
        """The first rows of a plan in its direction, each once."""
        return list(map(self._found, islice(self._positions(plan), most)))

    async def tally(self, plan: Plan) -> Sequence[tuple[str, int]]:
        """How many rows of a plan have which visibility."""
        numbers = (number for _, number in self._positions(plan))
        return list(Counter(self._rows[number - 1].visibility for number in numbers).items())

    async def consumptions(self, ids: Sequence[str]) -> Sequence[Consumption]:
        """Who took one of these artifacts."""
        return list(
            chain.from_iterable(self._taken[id].values() for id in ids if id in self._taken)
        )

    async def weigh(self, groups: Sequence[Sequence[int]], most: int) -> Sequence[int]:
        """How many entries the terms of each group have."""
        return [sum(len(self._entries.get(term, ())) for term in group) for group in groups]

    def _is_missing(self, row: Row) -> bool:
        number = self._numbers.get(row.id)
        if number is not None and self._rows[number - 1].digest != row.digest:
            raise ArtifactExists(row.id)
        return number is None

    def _add(self, row: Row) -> None:
        self._rows.append(row)
        number = self._numbers[row.id] = len(self._rows)
        for term in row.terms:
            insort(self._entries[term], (row.at, number))
        if row.opens is not None:
            insort(self._openings, row.opens)

    def _found(self, position: Position) -> Found:
        row = self._rows[position[1] - 1]
        return Found(*position, row.visibility, row.data)

    def _positions(self, plan: Plan) -> Iterator[Position]:
        """The positions of all branches in the direction of the plan, each once."""
        ways = [
            self._way(plan, branch, self._entries[term])
            for branch in plan.branches
            for term in branch.leads
            if term in self._entries
        ]
        if len(ways) == 1:
            return ways[0]
        return (position for position, _ in groupby(merge(*ways, reverse=plan.newest_first)))

    def _way(self, plan: Plan, branch: Branch, entries: Sequence[Position]) -> Iterator[Position]:
        first, last = bisect_right(entries, plan.low), bisect_left(entries, plan.high)
        numbers = range(last - 1, first - 1, -1) if plan.newest_first else range(first, last)
        for number in numbers:
            if _fits(self._rows[entries[number][1] - 1], branch, plan.now):
                yield entries[number]


def _fits(row: Row, branch: Branch, now: int) -> bool:
    if row.opens is not None and row.opens > now:
        return False
    terms = frozenset(row.terms)
    return terms.isdisjoint(branch.excluded) and not any(map(terms.isdisjoint, branch.groups))
