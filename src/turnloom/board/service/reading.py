"""Reading from a store that finds artifacts by terms: who may see what is decided here, for all."""

from collections.abc import Sequence
from datetime import datetime

from turnloom.board.logic.counting import Counts
from turnloom.board.logic.cursors import read_cursor, write_cursor
from turnloom.board.logic.envelopes import enclose
from turnloom.board.logic.matching import matches
from turnloom.board.logic.planning import Outline
from turnloom.board.logic.rows import read_artifact, read_visibility
from turnloom.board.logic.seeing import may_see
from turnloom.board.ports import ArtifactIndex
from turnloom.board.spec import Artifact, BoardSummary, Envelope, FilterConfig, Page, Reader
from turnloom.board.spec.index import Found, Plan, Position
from turnloom.board.spec.values import is_name
from turnloom.errors import UsageError

# How many rows are asked for at first where no limit says how many are wanted; and at most.
CHUNK = 250
MOST = 2_000
# To how many the entries of a group are counted, to look by the rarest.
ENOUGH = 2_000


class Reading:
    """One reader's look into an index, as of one instant."""

    def __init__(self, index: ArtifactIndex, reader: Reader, now: datetime) -> None:
        self._index = index
        self._reader = reader
        self._now = now

    async def get(self, id: str) -> Artifact | None:
        """The artifact of this id, if there is one that the reader may see."""
        found = await self._find(id)
        return self._seen(found) if found else None

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
        given = await self._enclose(items) if embed_meta and items else items
        return Page(tuple(given), total, write_cursor(filter, items[-1].id) if more else None)

    async def summary(self, filter: FilterConfig) -> BoardSummary:
        """How many there are of what the filter asks for and the reader may see."""
        counts = Counts()
        plan = await self._plan(filter)
        left = plan if plan.branches else None
        while left is not None:
            found, left = await self._look(filter, left)
            counts.add(found)
        return counts.summary()

    async def _enclose(self, items: Sequence[Artifact]) -> list[Envelope]:
        """Artifacts that the reader may see, with who took them: one look for all."""
        taken = await self._index.consumptions([item.id for item in items])
        return enclose(items, taken)

    async def _locate(self, filter: FilterConfig, cursor: str) -> Position:
        """Where a cursor stands: behind an artifact that the reader may see, or it would tell of
        one that it may not."""
        found = await self._find(read_cursor(filter, cursor))
        if found is None or self._seen(found) is None:
            raise UsageError(
                "The cursor stands behind an artifact that this reader does not find here. "
                "Begin again without a cursor."
            )
        return found.at, found.n

    async def _find(self, id: str) -> Found | None:
        """The row of an artifact; there is none of an id that no store can hold."""
        return await self._index.find(id) if is_name(id) else None

    async def _plan(self, filter: FilterConfig) -> Plan:
        """Look by the terms with the fewest entries."""
        outline = Outline(filter, self._reader)
        weights = None
        if not outline.decided:
            weights = await self._index.weigh(outline.groups(), ENOUGH)
        return outline.plan(weights, self._now)

    async def _count(self, filter: FilterConfig, plan: Plan) -> int:
        """How many there are in all; conditions on payloads need a look at each."""
        if not filter.where:
            return sum(n for text, n in await self._index.tally(plan) if self._shows(text))
        total, left = 0, plan
        while left is not None:
            found, left = await self._look(filter, left)
            total += len(found)
        return total

    async def _collect(self, filter: FilterConfig, plan: Plan) -> list[Artifact]:
        """As many as the limit says, and one more if there is one."""
        wanted = None if filter.limit is None else filter.limit + 1
        items: list[Artifact] = []
        left: Plan | None = plan
        most = min(wanted or CHUNK, MOST)
        while left is not None and not (wanted and len(items) >= wanted):
            found, left = await self._look(filter, left, most)
            items += found
            most = min(2 * most, MOST)
        return items

    async def _look(
        self, filter: FilterConfig, plan: Plan, most: int = MOST
    ) -> tuple[list[Artifact], Plan | None]:
        """What fits of the next rows, and the plan for the rows behind them, if there are more."""
        rows = await self._index.walk(plan, most)
        seen = [artifact for row in rows if (artifact := self._seen(row))]
        fitting = [artifact for artifact in seen if matches(filter, artifact)]
        more = len(rows) == most
        return fitting, plan.behind((rows[-1].at, rows[-1].n)) if more else None

    def _seen(self, found: Found) -> Artifact | None:
        visibility = read_visibility(found.visibility)
        if visibility is None or not may_see(visibility, self._reader, self._now):
            return None
        return read_artifact(visibility, found.data)

    def _shows(self, text: str) -> bool:
        return may_see(read_visibility(text), self._reader, self._now)
