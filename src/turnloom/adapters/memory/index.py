"""Index of artifacts in memory."""

from bisect import bisect_left, bisect_right, insort
from collections import Counter, defaultdict
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from heapq import merge
from itertools import chain, groupby, islice
from operator import itemgetter

from anyio import lowlevel

from turnloom.board.logic.rows import is_same_content, terms_of_run
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
from turnloom.log.spec import RunKey

# Identifies a consumption of an artifact.
Turn = tuple[str, str, int]
# An entry of a term, and whether its row fits the plan.
Look = tuple[Position, bool]
# The number of entries that are examined before other tasks run.
STRIDE = 1_000


class _Tenant:
    """The data of one tenant: row numbers by id, consumptions, and opening times."""

    __slots__ = ("numbers", "openings", "taken")

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        self.openings: list[int] = []
        self.taken: defaultdict[str, dict[Turn, Consumption]] = defaultdict(dict)


# The data of an unknown tenant.
_NOTHING = _Tenant()


class MemoryIndex:
    """Artifacts as rows of encoded text, so that readers get copies, and their consumptions."""

    def __init__(self) -> None:
        # A row's number is its index in the list plus 1.
        self._rows: list[ArtifactRow] = []
        self._tenants: defaultdict[str, _Tenant] = defaultdict(_Tenant)
        self._entries: defaultdict[int, list[Position]] = defaultdict(list)
        # Shared rows: their numbers by id, and their opening times.
        self._shared: defaultdict[str, list[int]] = defaultdict(list)
        self._shared_openings: list[int] = []

    def keep(
        self, tenant: str, rows: Iterable[ArtifactRow], consumptions: Iterable[Consumption] = ()
    ) -> None:
        """Store the rows and consumptions that a tenant does not have yet, all or none.

        Raises:
            ArtifactExists: a row exists with other content.
        """
        owner = self._tenants[tenant]
        for row in [row for row in rows if self._is_missing(owner, row)]:
            self._add(owner, row)
        for each in consumptions:
            turn = (each.subscription, each.run, each.turn)
            owner.taken[each.artifact].setdefault(turn, each)

    def of_run(self, run: RunKey) -> list[str]:
        """The ids of the artifacts of a run."""
        terms, numbers = terms_of_run(*run), self._tenants.get(run.tenant, _NOTHING).numbers
        found = {number for term in terms for _, number in self._entries.get(term, ())}
        return [id for id, number in numbers.items() if number in found]

    def remove(self, tenant: str, id: str) -> None:
        """Remove an artifact of a tenant, and its consumptions."""
        owner = self._tenants[tenant]
        number = owner.numbers.pop(id)
        row = self._rows[number - 1]
        for term in row.terms:
            self._entries[term].remove((row.at, number))
        if row.shared:
            self._shared[id].remove(number)
        if row.opens is not None:
            (self._shared_openings if row.shared else owner.openings).remove(row.opens)
        self._rows[number - 1] = row._replace(data="", terms=())  # numbers are used once
        owner.taken.pop(id, None)

    def forget_turns(self, run: RunKey) -> None:
        """Remove the consumptions of a run."""
        for turns in self._tenants[run.tenant].taken.values():
            for turn in [turn for turn in turns if turn[1] == run.id]:
                del turns[turn]

    def openings(self, tenant: str, after: int) -> Iterator[int]:
        """The times after a given one at which artifacts open to a tenant, ascending and
        distinct."""
        ways = (self._tenants.get(tenant, _NOTHING).openings, self._shared_openings)
        ahead = merge(*(islice(way, bisect_right(way, after), None) for way in ways))
        return (number for number, _ in groupby(ahead))

    async def find(self, tenant: str, id: str) -> Sequence[StoredArtifact]:
        """The rows with an id that belong to the tenant or are shared, by number."""
        own = self._tenants.get(tenant, _NOTHING).numbers.get(id)
        numbers = {*self._shared.get(id, ()), *(() if own is None else (own,))}
        return list(map(self._numbered, sorted(numbers)))

    async def walk(self, plan: IndexPlan, most: int) -> IndexStretch:
        """The rows among the first `most` entries of a plan in its order, each once."""
        positions, end = self._stretch(plan, most)
        return IndexStretch(list(map(self._found, positions)), end)

    async def tally(self, plan: IndexPlan) -> Sequence[tuple[str, int]]:
        """The number of rows of a plan per visibility."""
        counted = Counter[str]()
        async for rows in self._stretches(plan):
            counted.update(row.visibility for row in rows)
        return list(counted.items())

    async def counts(self, plan: IndexPlan) -> Sequence[ArtifactCount]:
        """The number of rows of a plan per visibility and traits."""
        return [
            ArtifactCount(row.visibility, row.data, 1)
            async for rows in self._stretches(plan)
            for row in rows
        ]

    async def consumptions(self, tenant: str, ids: Sequence[str]) -> Sequence[Consumption]:
        """The consumptions of a tenant's artifacts."""
        taken = self._tenants.get(tenant, _NOTHING).taken
        return list(chain.from_iterable(taken[id].values() for id in ids if id in taken))

    async def weigh(self, groups: Sequence[Sequence[int]], most: int) -> Sequence[int]:
        """The number of index entries of each group of terms."""
        return [sum(len(self._entries.get(term, ())) for term in group) for group in groups]

    def _is_missing(self, owner: _Tenant, row: ArtifactRow) -> bool:
        number = owner.numbers.get(row.id)
        if number is not None and not is_same_content(self._rows[number - 1], row):
            raise ArtifactExists(row.id)
        return number is None

    def _add(self, owner: _Tenant, row: ArtifactRow) -> None:
        self._rows.append(row)
        number = owner.numbers[row.id] = len(self._rows)
        position = (row.at, number)
        for term in row.terms:
            insort(self._entries[term], position)
        if row.shared:
            self._shared[row.id].append(number)
        if row.opens is not None:
            insort(self._shared_openings if row.shared else owner.openings, row.opens)

    def _numbered(self, number: int) -> StoredArtifact:
        return self._found((self._rows[number - 1].at, number))

    def _found(self, position: Position) -> StoredArtifact:
        row = self._rows[position[1] - 1]
        return StoredArtifact(*position, row.tenant, row.visibility, row.data)

    async def _stretches(self, plan: IndexPlan) -> AsyncGenerator[Iterator[ArtifactRow], None]:
        """All rows of a plan in batches, so that other tasks run in between."""
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
        """The entries of all branches in the plan's order, each position once."""
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
    if not (branch.excluded or branch.groups):
        return True
    terms = frozenset(row.terms)
    return terms.isdisjoint(branch.excluded) and not any(map(terms.isdisjoint, branch.groups))
