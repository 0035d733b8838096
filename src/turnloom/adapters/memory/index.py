"""What artifacts in memory are found by."""

from bisect import bisect_left, bisect_right, insort
from collections import Counter, defaultdict
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from heapq import merge
from itertools import chain, groupby, islice
from operator import itemgetter

from anyio import lowlevel

from turnloom.board.spec import Consumption
from turnloom.board.spec.queries import (
    ArtifactCount,
    ArtifactRow,
    Branch,
    IndexPlan,
    IndexStretch,
    Position,
    StoredArtifact,
)
from turnloom.errors import ArtifactExists

# What tells two consumptions of one artifact apart.
Turn = tuple[str, str, int]
# An entry of a term, and whether its row fits the plan.
Look = tuple[Position, bool]
# Entries that are looked at before other tasks run.
STRIDE = 1_000


class _Tenant:
    """What one tenant has: the numbers of its rows by id, who took them, and when rows open."""

    __slots__ = ("numbers", "openings", "taken")

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        self.openings: list[int] = []
        self.taken: defaultdict[str, dict[Turn, Consumption]] = defaultdict(dict)


# What a tenant has that keeps nothing.
_NOTHING = _Tenant()


class MemoryIndex:
    """Artifacts as rows of text, so that whoever reads gets copies, and who took them."""

    def __init__(self) -> None:
        # The number of a row is its place in the list, counted from 1.
        self._rows: list[ArtifactRow] = []
        self._tenants: defaultdict[str, _Tenant] = defaultdict(_Tenant)
        self._entries: defaultdict[int, list[Position]] = defaultdict(list)
        # What is shared: the numbers of rows by id, and when rows open.
        self._shared: defaultdict[str, list[int]] = defaultdict(list)
        self._shared_openings: list[int] = []

    def keep(
        self, tenant: str, rows: Iterable[ArtifactRow], consumptions: Iterable[Consumption] = ()
    ) -> None:
        """Keep what a tenant does not have yet, all or none.

        Raises:
            ArtifactExists: a row is there with other content.
        """
        held = self._tenants[tenant]
        for row in [row for row in rows if self._is_missing(held, row)]:
            self._add(held, row)
        for each in consumptions:
            turn = (each.subscription, each.run, each.turn)
            held.taken[each.artifact].setdefault(turn, each)

    def openings(self, tenant: str, after: int) -> Iterator[int]:
        """The instants behind one at which something opens to a tenant, soonest first, each
        once."""
        ways = (self._tenants.get(tenant, _NOTHING).openings, self._shared_openings)
        ahead = merge(*(islice(way, bisect_right(way, after), None) for way in ways))
        return (number for number, _ in groupby(ahead))

    async def find(self, tenant: str, id: str) -> Sequence[StoredArtifact]:
        """The rows of an id that are the tenant's or shared, by number."""
        own = self._tenants.get(tenant, _NOTHING).numbers.get(id)
        numbers = {*self._shared.get(id, ()), *(() if own is None else (own,))}
        return list(map(self._numbered, sorted(numbers)))

    async def walk(self, plan: IndexPlan, most: int) -> IndexStretch:
        """The rows among the first `most` entries of a plan in its direction, each once."""
        positions, end = self._stretch(plan, most)
        return IndexStretch(list(map(self._found, positions)), end)

    async def tally(self, plan: IndexPlan) -> Sequence[tuple[str, int]]:
        """How many rows of a plan have which visibility."""
        counted = Counter[str]()
        async for rows in self._stretches(plan):
            counted.update(row.visibility for row in rows)
        return list(counted.items())

    async def counts(self, plan: IndexPlan) -> Sequence[ArtifactCount]:
        """How many rows of a plan have which visibility and traits."""
        return [
            ArtifactCount(row.visibility, row.data, 1)
            async for rows in self._stretches(plan)
            for row in rows
        ]

    async def consumptions(self, tenant: str, ids: Sequence[str]) -> Sequence[Consumption]:
        """Who took one of these artifacts of a tenant."""
        taken = self._tenants.get(tenant, _NOTHING).taken
        return list(chain.from_iterable(taken[id].values() for id in ids if id in taken))

    async def weigh(self, groups: Sequence[Sequence[int]], most: int) -> Sequence[int]:
        """How many entries the terms of each group have."""
        return [sum(len(self._entries.get(term, ())) for term in group) for group in groups]

    def _is_missing(self, held: _Tenant, row: ArtifactRow) -> bool:
        number = held.numbers.get(row.id)
        if number is not None and self._rows[number - 1].digest != row.digest:
            raise ArtifactExists(row.id)
        return number is None

    def _add(self, held: _Tenant, row: ArtifactRow) -> None:
        self._rows.append(row)
        number = held.numbers[row.id] = len(self._rows)
        for term in row.terms:
            insort(self._entries[term], (row.at, number))
        if row.shared:
            self._shared[row.id].append(number)
        if row.opens is not None:
            insort(self._shared_openings if row.shared else held.openings, row.opens)

    def _numbered(self, number: int) -> StoredArtifact:
        return self._found((self._rows[number - 1].at, number))

    def _found(self, position: Position) -> StoredArtifact:
        row = self._rows[position[1] - 1]
        return StoredArtifact(*position, row.tenant, row.visibility, row.data)

    async def _stretches(self, plan: IndexPlan) -> AsyncGenerator[Iterator[ArtifactRow], None]:
        """All rows of a plan, a few at a time, so that other tasks run in between."""
        end: Position | None = None
        while True:
            positions, end = self._stretch(plan if end is None else plan.behind(end), STRIDE)
            yield (self._rows[number - 1] for _, number in positions)
            if end is None:
                return
            await lowlevel.checkpoint()

    def _stretch(self, plan: IndexPlan, most: int) -> tuple[list[Position], Position | None]:
        """The positions that fit among the first entries of a plan, and the last of these entries
        if there may be more."""
        entries = list(islice(self._looks(plan), most))
        fitting = [position for position, fits in entries if fits]
        return fitting, entries[-1][0] if len(entries) == most else None

    def _looks(self, plan: IndexPlan) -> Iterator[Look]:
        """The entries of all branches in the direction of the plan, each position once."""
        ways = [
            self._way(plan, branch, self._entries[term])
            for branch in plan.branches
            for term in branch.leads
            if term in self._entries
        ]
        if len(ways) == 1:
            return ways[0]
        merged = groupby(merge(*ways, reverse=plan.newest_first), key=itemgetter(0))
        return ((position, any(fits for _, fits in same)) for position, same in merged)

    def _way(self, plan: IndexPlan, branch: Branch, entries: Sequence[Position]) -> Iterator[Look]:
        first, last = bisect_right(entries, plan.low), bisect_left(entries, plan.high)
        numbers = range(last - 1, first - 1, -1) if plan.newest_first else range(first, last)
        for number in numbers:
            position = entries[number]
            yield position, _fits(self._rows[position[1] - 1], branch, plan)


def _fits(row: ArtifactRow, branch: Branch, plan: IndexPlan) -> bool:
    is_own = row.tenant == plan.tenant
    if not (is_own or row.shared):
        return False
    if row.opens is not None and row.opens > (plan.opened if is_own else plan.now):
        return False
    terms = frozenset(row.terms)
    return terms.isdisjoint(branch.excluded) and not any(map(terms.isdisjoint, branch.groups))
