"""Reading from a store that finds artifacts by terms: who may see what is decided here, for all."""

import logging
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from typing import TypeVar

from anyio import to_thread

from turnloom.board.logic.matching import matches, may_see
from turnloom.board.logic.queries import ArtifactCounts, Outline, enclose, read_cursor, write_cursor
from turnloom.board.logic.rows import read_artifact, read_visibility
from turnloom.board.ports import ArtifactIndex
from turnloom.board.spec import Artifact, BoardSummary, FilterConfig, Page, Reader, is_shared
from turnloom.board.spec.queries import IndexPlan, Position, StoredArtifact
from turnloom.errors import InvalidArtifact, UsageError
from turnloom.kernel.values import is_name

T = TypeVar("T")

_log = logging.getLogger("turnloom.board")

# How many rows are asked for at first where no limit says how many are wanted; and at most.
CHUNK = 250
MOST = 2_000
# How many artifacts are given at once where no limit says how many are wanted.
MOST_ITEMS = 100_000
# How many rows are read and compared on the loop; more are in a thread.
FEW = 50
# An artifact that the reader may see, and the row that it was read from.
Seen = tuple[StoredArtifact, Artifact]

# Who looks at what another tenant shares.
STRANGER = Reader()

# To how many the entries of a group are counted, to look by the rarest.
ENOUGH = 2_000


class IndexReader:
    """One reader's look into an index, as of one instant."""

    def __init__(self, index: ArtifactIndex, reader: Reader, now: datetime) -> None:
        self._index = index
        self._reader = reader
        self._now = now

    async def get(self, id: str) -> Artifact | None:
        """The artifact of this id, if there is one that the reader may see."""
        if not is_name(id):
            return None  # no store can hold it
        tenant = self._reader.tenant
        rows = await self._index.find(tenant, id)
        own_first = sorted(rows, key=lambda row: row.tenant != tenant)
        return next(filter(None, map(self._seen, own_first)), None)

    async def query(
        self, filter: FilterConfig, cursor: str | None, count: bool, embed_meta: bool
    ) -> Page:
        """One page of what the filter asks for and the reader may see; in envelopes, if who took
        it is to be said as well.

        Raises:
            UsageError: the cursor is none, or belongs to another filter or reader.
        """
        last = None if cursor is None else await self._locate(filter, cursor)
        plan = await self._plan(filter)
        if not plan.branches:
            return Page((), 0 if count else None)
        total = await self._count(filter, plan) if count else None
        items = await self._collect(filter, plan.behind(last) if last else plan)
        more = filter.limit is not None and len(items) > filter.limit
        items = items[: filter.limit]
        given = [artifact for _, artifact in items]
        if embed_meta and items:
            given = await self._enclose(items)
        return Page(tuple(given), total, await self._mark(filter, items[-1]) if more else None)

    async def summary(self, filter: FilterConfig) -> BoardSummary:
        """How many there are of what the filter asks for and the reader may see."""
        counts = ArtifactCounts()
        plan = await self._plan(filter)
        left = plan if plan.branches else None
        while left is not None:
            rows, left = await self._next(left, MOST)
            await _off_loop(partial(self._add, counts, filter, rows), len(rows))
        return counts.summary()

    def _add(
        self, counts: ArtifactCounts, filter: FilterConfig, rows: Sequence[StoredArtifact]
    ) -> None:
        """Count what the filter asks for of some rows, and the reader may see."""
        counts.add(artifact for _, artifact in self._fitting(filter, rows))

    async def _enclose(self, items: Sequence[Seen]) -> list[Artifact]:
        """Artifacts that the reader may see, with who of its tenant took its own: one look for
        all."""
        tenant = self._reader.tenant
        own = [artifact for found, artifact in items if found.tenant == tenant]
        taken = await self._index.consumptions(tenant, [each.id for each in own])
        enclosed = iter(enclose(own, taken))
        return [
            next(enclosed) if found.tenant == tenant else enclose([artifact], ())[0]
            for found, artifact in items
        ]

    async def _mark(self, filter: FilterConfig, last: Seen) -> str:
        """The cursor behind an artifact."""
        found, artifact = last
        rows = await self._index.find(self._reader.tenant, artifact.id)
        return write_cursor(
            filter, self._reader, artifact.id, [row.n for row in rows].index(found.n)
        )

    async def _locate(self, filter: FilterConfig, cursor: str) -> Position:
        """Where a cursor stands: behind an artifact that the reader may see, or it would tell of
        one that it may not."""
        id, which = read_cursor(filter, self._reader, cursor)
        rows = await self._index.find(self._reader.tenant, id) if is_name(id) else ()
        found = rows[which] if 0 <= which < len(rows) else None
        if found is None or self._seen(found) is None:
            raise UsageError(
                "The cursor stands behind an artifact that this reader does not find here. "
                "Begin again without a cursor."
            )
        return found.at, found.n

    async def _plan(self, filter: FilterConfig) -> IndexPlan:
        """Look by the terms with the fewest entries."""
        outline = Outline(filter, self._reader)
        weights = None
        if not outline.decided:
            weights = await self._index.weigh(outline.groups(), ENOUGH)
        return outline.plan(weights, self._now)

    async def _count(self, filter: FilterConfig, plan: IndexPlan) -> int:
        """How many there are in all; conditions on payloads need a look at each."""
        if not filter.where:
            return sum(n for text, n in await self._index.tally(plan) if self._shows(text))
        total, left = 0, plan
        while left is not None:
            found, left = await self._look(filter, left)
            total += len(found)
        return total

    async def _collect(self, filter: FilterConfig, plan: IndexPlan) -> list[Seen]:
        """As many as the limit says, and one more if there is one."""
        wanted = None if filter.limit is None else filter.limit + 1
        items: list[Seen] = []
        left: IndexPlan | None = plan
        most = min(wanted or CHUNK, MOST)
        while left is not None and not (wanted and len(items) >= wanted):
            found, left = await self._look(filter, left, most)
            items += found
            most = min(2 * most, MOST)
            if wanted is None and len(items) > MOST_ITEMS:
                raise UsageError(
                    f"The filter finds more than {MOST_ITEMS:,} artifacts. Give it a `limit`, and "
                    "go on with the cursor."
                )
        return items

    async def _look(
        self, filter: FilterConfig, plan: IndexPlan, most: int = MOST
    ) -> tuple[list[Seen], IndexPlan | None]:
        """What fits of the next rows, and the plan for the rows behind them, if there are more."""
        rows, left = await self._next(plan, most)
        return await _off_loop(partial(self._fitting, filter, rows), len(rows)), left

    async def _next(
        self, plan: IndexPlan, most: int
    ) -> tuple[Sequence[StoredArtifact], IndexPlan | None]:
        """The next rows of a plan, and the plan for the rows behind them, if there are more."""
        rows = await self._index.walk(plan, most)
        more = len(rows) == most
        return rows, plan.behind((rows[-1].at, rows[-1].n)) if more else None

    def _fitting(self, filter: FilterConfig, rows: Sequence[StoredArtifact]) -> list[Seen]:
        """What the filter asks for of some rows, and the reader may see."""
        seen = [(row, artifact) for row in rows if (artifact := self._seen(row))]
        return [each for each in seen if matches(filter, each[1])]

    def _seen(self, found: StoredArtifact) -> Artifact | None:
        visibility = read_visibility(found.visibility)
        is_own = found.tenant == self._reader.tenant
        reader = self._reader if is_own else STRANGER
        if visibility is None or not may_see(visibility, reader, self._now):
            return None
        if not (is_own or is_shared(visibility)):
            return None
        try:
            return read_artifact(visibility, found.data)
        except InvalidArtifact as error:
            _log.warning("row %d of the board is left out: %s", found.n, error)
            return None

    def _shows(self, text: str) -> bool:
        return may_see(read_visibility(text), self._reader, self._now)


async def _off_loop(judge: Callable[[], T], rows: int) -> T:
    """What comes of judging so many rows, while other tasks get their go."""
    return judge() if rows <= FEW else await to_thread.run_sync(judge, abandon_on_cancel=True)
