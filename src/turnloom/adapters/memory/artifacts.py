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

    async def put(self, artifacts: Sequence[Artifact]) -> None:
        """Keep artifacts in their order, all or none; one that is there already changes nothing.

        Raises:
            ArtifactExists: one is there with other content.
            InvalidArtifact: one cannot be kept as it is.
            UsageError: the store is closed.
        """
        self._log.check_open()
        self._index.keep(rows_of(artifacts))

    async def consume(self, consumptions: Sequence[Consumption]) -> None:
        """Keep who took what; one that is there already changes nothing."""
        self._log.check_open()
        self._index.keep((), consumptions)

    async def find(self, id: str) -> Found | None:
        """The row of an artifact, whoever may see it."""
        self._log.check_open()
        return await self._index.find(id)

    async def consumptions(self, ids: Sequence[str]) -> Sequence[Consumption]:
        """Who took one of these artifacts, in any order."""
        self._log.check_open()
        return await self._index.consumptions(ids)

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

    async def upcoming(self, now: datetime, limit: int) -> Sequence[datetime]:
        """The next instants at which something becomes visible that is not yet, soonest first."""
        self._log.check_open()
        ahead = self._index.openings(microseconds(now))
        return [instant_of(number) for number in islice(ahead, limit)]

    async def aclose(self) -> None:
        """Nothing of its own is open: it is closed with the log."""
