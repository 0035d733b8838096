"""Artifacts in this process's memory."""

from collections.abc import Sequence
from datetime import datetime
from itertools import islice

from turnloom.adapters.memory.index import MemoryIndex
from turnloom.adapters.memory.log import MemoryLog
from turnloom.board.logic.rows import instant_of, microseconds, rows_of
from turnloom.board.service import Reading
from turnloom.board.spec import Artifact, BoardSummary, Consumption, FilterConfig, Page, Reader
from turnloom.board.spec.index import Found


class MemoryArtifacts:
    """Artifacts beside a log in memory; `follows_log` says whether what that log is told of the
    board is here at once."""

    def __init__(self, log: MemoryLog, index: MemoryIndex, follows_log: bool = False) -> None:
        self._log = log
        self._index = index
        self.follows_log = follows_log

    async def put(self, tenant: str, artifacts: Sequence[Artifact]) -> None:
        """Keep artifacts of a tenant in their order, all or none; one that is there already changes
        nothing.

        Raises:
            ArtifactExists: one is there with other content.
            InvalidArtifact: one cannot be kept as it is.
            UsageError: the store is closed.
        """
        self._log.check_open()
        self._index.keep(tenant, rows_of(tenant, artifacts))

    async def consume(self, tenant: str, consumptions: Sequence[Consumption]) -> None:
        """Keep who of a tenant took what; one that is there already changes nothing."""
        self._log.check_open()
        self._index.keep(tenant, (), consumptions)

    async def find(self, tenant: str, id: str) -> Sequence[Found]:
        """The rows of an id that are the tenant's or shared, whoever may see them."""
        self._log.check_open()
        return await self._index.find(tenant, id)

    async def consumptions(self, tenant: str, ids: Sequence[str]) -> Sequence[Consumption]:
        """Who took one of these artifacts of a tenant, in any order."""
        self._log.check_open()
        return await self._index.consumptions(tenant, ids)

    async def get(self, id: str, reader: Reader, now: datetime) -> Artifact | None:
        """The artifact of this id as a copy; none if there is none that the reader may see."""
        self._log.check_open()
        return await Reading(self._index, reader, now).get(id)

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
        """Copies of what the filter asks for and the reader may see.

        Raises:
            UsageError: the cursor is none of this filter's and reader's, or the store is closed.
        """
        self._log.check_open()
        return await Reading(self._index, reader, now).query(filter, cursor, count, embed_meta)

    async def summary(self, filter: FilterConfig, reader: Reader, now: datetime) -> BoardSummary:
        """How many there are of what the filter asks for and the reader may see."""
        self._log.check_open()
        return await Reading(self._index, reader, now).summary(filter)

    async def upcoming(self, tenant: str, now: datetime, limit: int) -> Sequence[datetime]:
        """The next instants at which something becomes visible to a tenant, soonest first."""
        self._log.check_open()
        ahead = self._index.openings(tenant, microseconds(now))
        return [instant_of(number) for number in islice(ahead, limit)]

    async def aclose(self) -> None:
        """Nothing of its own is open: it is closed with the log."""
