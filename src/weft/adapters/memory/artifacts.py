"""Artifacts in this process's memory."""

from bisect import bisect_left, bisect_right, insort
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from datetime import datetime
from heapq import merge
from itertools import groupby, islice

from weft.adapters.memory.log import MemoryLog
from weft.board.logic.rows import instant_of, microseconds, rows_of
from weft.board.service import Reading
from weft.board.spec import Artifact, FilterConfig, Page, Reader
from weft.board.spec.index import Branch, Found, Plan, Position, Row
from weft.errors import ArtifactExists


class MemoryArtifacts:
    """Artifacts as rows of text, so that whoever reads gets copies."""

    def __init__(self, log: MemoryLog) -> None:
        self._log = log
        # The number of a row is its place in the list, counted from 1.
        self._rows: list[Row] = []
        self._numbers: dict[str, int] = {}
        self._entries: defaultdict[int, list[Position]] = defaultdict(list)
        self._openings: list[int] = []

    async def put(self, artifacts: Sequence[Artifact]) -> None:
        """Keep artifacts in their order, all or none; one that is there already changes nothing.

        Raises:
            ArtifactExists: one is there with other content.
            InvalidArtifact: one cannot be kept as it is.
            UsageError: the store is closed.
        """
        self._log.check_open()
        missing: list[Row] = []
        for row in rows_of(artifacts):
            number = self._numbers.get(row.id)
            if number is None:
                missing.append(row)
            elif self._rows[number - 1].digest != row.digest:
                raise ArtifactExists(row.id)
        for row in missing:
            self._keep(row)

    async def get(self, id: str, reader: Reader, now: datetime) -> Artifact | None:
        """The artifact of this id as a copy; none if there is none that the reader may see."""
        return await Reading(self, reader, now).get(id)

    async def query(
        self,
        filter: FilterConfig,
        reader: Reader,
        now: datetime,
        *,
        cursor: str | None = None,
        count: bool = False,
    ) -> Page:
        """Copies of what the filter asks for and the reader may see.

        Raises:
            UsageError: the cursor is none of this filter's and reader's, or the store is closed.
        """
        self._log.check_open()
        return await Reading(self, reader, now).query(filter, cursor, count)

    async def upcoming(self, now: datetime, limit: int) -> Sequence[datetime]:
        """The next instants at which something becomes visible that is not yet, soonest first."""
        self._log.check_open()
        ahead = islice(self._openings, bisect_right(self._openings, microseconds(now)), None)
        return [instant_of(number) for number, _ in islice(groupby(ahead), limit)]

    async def find(self, id: str) -> Found | None:
        """The row of an artifact."""
        self._log.check_open()
        number = self._numbers.get(id)
        return None if number is None else self._found((self._rows[number - 1].at, number))

    async def walk(self, plan: Plan, most: int) -> Sequence[Found]:
        """The first rows of a plan in its direction, each once."""
        return list(map(self._found, islice(self._positions(plan), most)))

    async def tally(self, plan: Plan) -> Sequence[tuple[str, int]]:
        """How many rows of a plan have which visibility."""
        numbers = (number for _, number in self._positions(plan))
        return list(Counter(self._rows[number - 1].visibility for number in numbers).items())

    async def weigh(self, groups: Sequence[Sequence[int]], most: int) -> Sequence[int]:
        """How many entries the terms of each group have."""
        return [sum(len(self._entries.get(term, ())) for term in group) for group in groups]

    def _keep(self, row: Row) -> None:
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
        ways = [self._way(plan, branch, term) for branch in plan.branches for term in branch.leads]
        return (position for position, _ in groupby(merge(*ways, reverse=plan.newest_first)))

    def _way(self, plan: Plan, branch: Branch, term: int) -> Iterator[Position]:
        entries = self._entries.get(term, [])
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
