"""Reading from a term index; visibility is checked here, for all stores."""

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence, Set
from datetime import datetime
from functools import partial
from typing import NamedTuple, TypeVar

from anyio import lowlevel, to_thread

from turnloom.board.logic.matching import matches, may_see
from turnloom.board.logic.queries import (
    ArtifactCounts,
    Outline,
    enclose,
    plan_newest,
    read_cursor,
    write_cursor,
)
from turnloom.board.logic.rows import (
    read_artifact,
    read_content,
    read_id,
    read_traits,
    read_visibility,
)
from turnloom.board.ports import ArtifactIndex
from turnloom.board.spec import (
    Artifact,
    BoardSummary,
    FilterConfig,
    Page,
    Reader,
    Visibility,
    is_shared,
)
from turnloom.board.spec.queries import (
    MOST_COMPARED,
    ArtifactCount,
    IndexPlan,
    IndexStretch,
    Position,
    StoredArtifact,
)
from turnloom.errors import InvalidArtifact, UsageError
from turnloom.kernel.values import is_name

T = TypeVar("T")

_log = logging.getLogger("turnloom.board")

# Rows of the first read without a limit, and the maximum rows per read.
CHUNK = 250
MOST = 2_000
# Maximum rows judged on the event loop; more are judged in a thread.
FEW = 50

# The reader of what other tenants share.
STRANGER = Reader()

# The limit of counting a group's entries, to search by the rarest.
ENOUGH = 2_000


class IndexedArtifacts(ABC):
    """The read half of an artifact store with a term index; a page compares at most `most_compared`
    artifacts."""

    most_compared = MOST_COMPARED

    @abstractmethod
    async def opened(self) -> ArtifactIndex:
        """The index to read from.

        Raises:
            UsageError: the store is closed.
            StoreUnavailable: the store cannot be read.
        """

    async def get(self, id: str, reader: Reader, now: datetime) -> Artifact | None:
        """A copy of the artifact with this id; None if the reader may see none."""
        return await IndexReader(await self.opened(), reader, now).get(id)

    async def query(
        self,
        filter: FilterConfig,
        reader: Reader,
        now: datetime,
        *,
        embed_meta: bool = False,
        cursor: str | None = None,
        count: bool = False,
    ) -> Page:
        """A page of copies of the visible artifacts that match the filter.

        Raises:
            UsageError: the cursor is invalid or belongs to another query, or the store is closed.
            StoreUnavailable: the store cannot be read.
        """
        index = IndexReader(await self.opened(), reader, now, self.most_compared)
        return await index.query(filter, cursor, count, embed_meta)

    async def newest(
        self,
        correlation: str,
        reader: Reader,
        now: datetime,
        most: int,
        *,
        without: Set[str] = frozenset(),
    ) -> Sequence[Artifact]:
        """Copies of the last visible artifacts of a correlation, newest first; without those of
        some ids.

        Raises:
            UsageError: the store is closed.
            StoreUnavailable: the store cannot be read.
        """
        index = IndexReader(await self.opened(), reader, now)
        return await index.newest(correlation, most, without)

    async def summary(self, filter: FilterConfig, reader: Reader, now: datetime) -> BoardSummary:
        """Counts of the visible artifacts that match the filter."""
        return await IndexReader(await self.opened(), reader, now).summary(filter)


class _Compared(NamedTuple):
    """A visible row, and its artifact if it matches the filter."""

    row: StoredArtifact
    id: str
    artifact: Artifact | None


class IndexReader:
    """One reader's access to an index, as of one instant."""

    def __init__(
        self,
        index: ArtifactIndex,
        reader: Reader,
        now: datetime,
        most_compared: int = MOST_COMPARED,
    ) -> None:
        self._index = index
        self._reader = reader
        self._now = now
        self._most_compared = most_compared

    async def get(self, id: str) -> Artifact | None:
        """The artifact with this id, if the reader may see one."""
        if not is_name(id):
            return None  # not storable
        tenant = self._reader.tenant
        rows = await self._index.find(tenant, id)
        own_first = sorted(rows, key=lambda row: row.tenant != tenant)
        return next(filter(None, map(self._read, own_first)), None)

    async def query(
        self, filter: FilterConfig, cursor: str | None, count: bool, embed_meta: bool
    ) -> Page:
        """One page of visible artifacts that match the filter; in envelopes with `embed_meta`.

        Raises:
            UsageError: the cursor is invalid, or belongs to another filter or reader.
        """
        last = None if cursor is None else await self._locate(filter, cursor)
        plan = await self._plan(filter)
        if not plan.branches:
            return Page((), 0 if count else None)
        total = await self._count(filter, plan) if count else None
        items, end = await self._collect(filter, plan.behind(last) if last else plan)
        given = [each.artifact for each in items if each.artifact is not None]
        if embed_meta and given:
            given = await self._enclose(items, given)
        return Page(tuple(given), total, await self._mark(filter, end) if end else None)

    async def newest(self, correlation: str, most: int, without: Set[str]) -> list[Artifact]:
        """The last visible artifacts of a correlation, newest first; without those of some ids."""
        found: list[Artifact] = []
        left: IndexPlan | None = plan_newest(correlation, self._reader, self._now)
        while left is not None and len(found) < most:
            stretch = await self._index.walk(left, min(most - len(found) + len(without), MOST))
            read = partial(self._read_others, correlation, without, stretch.rows)
            found += await _off_loop(read, len(stretch.rows))
            left = await _behind(left, stretch)
        return found[:most]

    def _read_others(
        self, correlation: str, without: Set[str], rows: Sequence[StoredArtifact]
    ) -> list[Artifact]:
        """The visible artifacts of a correlation among some rows, without those of some ids."""
        found: list[Artifact] = []
        skipped = 0  # of the artifacts to leave out: each is looked for until it was there
        for row in rows:
            if skipped < len(without) and read_id(row.data) in without:
                skipped += 1
                continue
            artifact = self._read(row)
            if artifact is not None and artifact.id not in without:
                if artifact.correlation_id == correlation:  # terms can collide
                    found.append(artifact)
        return found

    async def summary(self, filter: FilterConfig) -> BoardSummary:
        """Counts of the visible artifacts that match the filter."""
        plan = await self._plan(filter)
        if not plan.branches:
            return ArtifactCounts().summary()
        if filter.where:
            return (await self._count_matching(filter, plan)).summary()
        groups = await self._index.counts(plan)
        counts = await _off_loop(partial(self._add_up, groups), len(groups))
        return counts.summary()

    def _add_up(self, groups: Sequence[ArtifactCount]) -> ArtifactCounts:
        """The counts of the visible groups."""
        counts = ArtifactCounts()
        for each in groups:
            visibility = read_visibility(each.visibility)
            if visibility is None or not may_see(visibility, self._reader, self._now):
                continue
            try:
                counts.add(visibility, read_traits(each.traits), each.number)
            except InvalidArtifact as error:
                _log.warning("did not count %d rows of the board: %s", each.number, error)
        return counts

    async def _count_matching(self, filter: FilterConfig, plan: IndexPlan) -> ArtifactCounts:
        """Counts by conditions on payloads, which require reading each row."""
        counts = ArtifactCounts()
        left: IndexPlan | None = plan
        while left is not None:
            stretch = await self._index.walk(left, MOST)
            add = partial(self._add_matching, counts, filter, stretch.rows)
            await _off_loop(add, len(stretch.rows))
            left = await _behind(left, stretch)
        return counts

    def _add_matching(
        self, counts: ArtifactCounts, filter: FilterConfig, rows: Sequence[StoredArtifact]
    ) -> None:
        for row in rows:
            if (visibility := self._visibility(row)) is None:
                continue
            try:
                content = read_content(row.data)
            except InvalidArtifact as error:
                _leave_out(row, error)
                continue
            if matches(filter, content):
                counts.add(visibility, content)

    async def _enclose(
        self, items: Sequence[_Compared], given: Sequence[Artifact]
    ) -> list[Artifact]:
        """Artifacts in envelopes; only those of the reader's tenant have consumptions. One lookup
        for all."""
        tenant = self._reader.tenant
        is_own = [each.row.tenant == tenant for each in items]
        own = [artifact for artifact, mine in zip(given, is_own, strict=True) if mine]
        taken = await self._index.consumptions(tenant, [each.id for each in own])
        enclosed = iter(enclose(own, taken))
        return [
            next(enclosed) if mine else enclose([artifact], ())[0]
            for artifact, mine in zip(given, is_own, strict=True)
        ]

    async def _mark(self, filter: FilterConfig, end: _Compared) -> str:
        """The cursor after an artifact."""
        rows = await self._index.find(self._reader.tenant, end.id)
        which = [row.n for row in rows].index(end.row.n)
        return write_cursor(filter, self._reader, end.id, which)

    async def _locate(self, filter: FilterConfig, cursor: str) -> Position:
        """The position of a cursor; it must be after a visible artifact, or it would reveal a
        hidden one."""
        id, which = read_cursor(filter, self._reader, cursor)
        rows = await self._index.find(self._reader.tenant, id) if is_name(id) else ()
        found = rows[which] if 0 <= which < len(rows) else None
        if found is None or self._visibility(found) is None:
            raise UsageError(
                "The cursor refers to an artifact that this reader cannot find. "
                "Start again without a cursor."
            )
        return found.at, found.n

    async def _plan(self, filter: FilterConfig) -> IndexPlan:
        """A plan that searches by the terms with the fewest entries."""
        outline = Outline(filter, self._reader)
        weights = None
        if not outline.decided:
            weights = await self._index.weigh(outline.groups(), ENOUGH)
        return outline.plan(weights, self._now)

    async def _count(self, filter: FilterConfig, plan: IndexPlan) -> int:
        """The total."""
        if filter.where:
            return (await self._count_matching(filter, plan)).total
        return sum(n for text, n in await self._index.tally(plan) if self._shows(text))

    async def _collect(
        self, filter: FilterConfig, plan: IndexPlan
    ) -> tuple[list[_Compared], _Compared | None]:
        """The artifacts of one page, and the row to continue after if there may be more.

        Only visible rows decide where a page ends.
        """
        items: list[_Compared] = []
        last: _Compared | None = None
        compared = 0
        most = CHUNK if filter.limit is None else filter.limit + 1
        left: IndexPlan | None = plan
        while left is not None:
            rest = self._most_compared + 1 - compared
            stretch = await self._index.walk(left, min(most, MOST, rest))
            for each in await self._compare_all(filter, stretch.rows):
                if compared == self._most_compared:
                    return items, last
                if each.artifact is not None:
                    if len(items) == filter.limit:
                        return items, items[-1]
                    items.append(each)
                last = each
                compared += 1
            left = await _behind(left, stretch)
            most = min(2 * most, MOST)
        return items, None

    async def _compare_all(
        self, filter: FilterConfig, rows: Sequence[StoredArtifact]
    ) -> Sequence[_Compared]:
        """The visible rows, compared with the filter."""

        def compared() -> list[_Compared]:
            return [each for row in rows if (each := self._compare(filter, row))]

        return await _off_loop(compared, len(rows))

    def _compare(self, filter: FilterConfig, row: StoredArtifact) -> _Compared | None:
        if (visibility := self._visibility(row)) is None:
            return None
        try:
            if filter.where:  # many do not match, and need not be read as a whole
                content = read_content(row.data)
                if not matches(filter, content):
                    return _Compared(row, content.id, None)
            artifact = read_artifact(visibility, row.data)
        except InvalidArtifact as error:
            return _leave_out(row, error)
        return _Compared(row, artifact.id, artifact if matches(filter, artifact) else None)

    def _read(self, row: StoredArtifact) -> Artifact | None:
        """The artifact of a row, if visible."""
        if (visibility := self._visibility(row)) is None:
            return None
        try:
            return read_artifact(visibility, row.data)
        except InvalidArtifact as error:
            return _leave_out(row, error)

    def _visibility(self, row: StoredArtifact) -> Visibility | None:
        """The visibility of a row, if the reader may see it."""
        visibility = read_visibility(row.visibility)
        is_own = row.tenant == self._reader.tenant
        reader = self._reader if is_own else STRANGER
        if visibility is None or not may_see(visibility, reader, self._now):
            return None
        return visibility if is_own or is_shared(visibility) else None

    def _shows(self, text: str) -> bool:
        return may_see(read_visibility(text), self._reader, self._now)


def _leave_out(row: StoredArtifact, error: InvalidArtifact) -> None:
    _log.warning("skipped row %d of the board: %s", row.n, error)


async def _behind(plan: IndexPlan, stretch: IndexStretch) -> IndexPlan | None:
    """The plan after a stretch, if there is more; other tasks can run first."""
    if stretch.end is None:
        return None
    await lowlevel.checkpoint()
    return plan.behind(stretch.end)


async def _off_loop(judge: Callable[[], T], rows: int) -> T:
    """Judge rows, in a thread if there are many, so that other tasks can run."""
    return judge() if rows <= FEW else await to_thread.run_sync(judge, abandon_on_cancel=True)
