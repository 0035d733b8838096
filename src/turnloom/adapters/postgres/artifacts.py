"""Artifacts in PostgreSQL, for any number of machines.

The tables are made by whoever comes first, in the first schema of the connection's search path.
"""

from collections.abc import Sequence
from datetime import datetime

import psycopg

from turnloom.adapters.postgres import artifact_queries as queries
from turnloom.adapters.postgres.connections import Tables
from turnloom.board.logic.rows import instant_of, microseconds, read_consumption, rows_of
from turnloom.board.service import IndexReader
from turnloom.board.spec import Artifact, BoardSummary, Consumption, FilterConfig, Page, Reader
from turnloom.board.spec.queries import IndexPlan, StoredArtifact
from turnloom.errors import ArtifactExists, StoreUnavailable


class PostgresArtifacts:
    """Artifacts in the tables of one PostgreSQL database, in which no log is."""

    follows_log = False

    def __init__(self, url: str, timeout: float = 5.0) -> None:
        self._tables = Tables(url, timeout, queries.SCHEMA)

    async def put(self, tenant: str, artifacts: Sequence[Artifact]) -> None:
        """Keep artifacts of a tenant in their order, all or none; one that is there already changes
        nothing.

        Raises:
            ArtifactExists: one is there with other content.
            InvalidArtifact: one cannot be kept as it is.
            UsageError: the store is closed.
            StoreUnavailable: the server does not answer, in time or at all; the same may be tried
                again later.
        """
        if not (rows := rows_of(tenant, artifacts)):
            return await self._tables.prepare()
        try:
            await self._tables.run(queries.put(rows))
        except StoreUnavailable as error:
            cause = error.__cause__
            if isinstance(cause, psycopg.Error) and cause.sqlstate == queries.TAKEN:
                raise ArtifactExists(cause.diag.message_primary or "") from error
            raise

    async def consume(self, tenant: str, consumptions: Sequence[Consumption]) -> None:
        """Keep who of a tenant took what, all or none; one that is there already changes nothing.

        Raises:
            UsageError: the store is closed.
            StoreUnavailable: the server does not answer, in time or at all; the same may be tried
                again later.
        """
        if consumptions:
            await self._tables.run(queries.consume(tenant, consumptions))
        else:
            await self._tables.prepare()

    async def get(self, id: str, reader: Reader, now: datetime) -> Artifact | None:
        """The artifact of this id as a copy; none if there is none that the reader may see."""
        return await IndexReader(self, reader, now).get(id)

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
            StoreUnavailable: the server does not answer, in time or at all.
        """
        await self._tables.prepare()
        return await IndexReader(self, reader, now).query(filter, cursor, count, embed_meta)

    async def summary(self, filter: FilterConfig, reader: Reader, now: datetime) -> BoardSummary:
        """How many there are of what the filter asks for and the reader may see."""
        await self._tables.prepare()
        return await IndexReader(self, reader, now).summary(filter)

    async def upcoming(self, tenant: str, now: datetime, limit: int) -> Sequence[datetime]:
        """The next instants at which something becomes visible to a tenant, soonest first."""
        rows = await self._tables.run(queries.upcoming(tenant, microseconds(now), limit))
        return [instant_of(number) for (number,) in rows]

    async def find(self, tenant: str, id: str) -> Sequence[StoredArtifact]:
        """The rows of an id that are the tenant's or shared, by number."""
        return [StoredArtifact(*row) for row in await self._tables.run(queries.find(tenant, id))]

    async def walk(self, plan: IndexPlan, most: int) -> Sequence[StoredArtifact]:
        """The first rows of a plan in its direction, each once."""
        return [StoredArtifact(*row) for row in await self._tables.run(queries.walk(plan, most))]

    async def tally(self, plan: IndexPlan) -> Sequence[tuple[str, int]]:
        """How many rows of a plan have which visibility."""
        return [(text, count) for text, count in await self._tables.run(queries.tally(plan))]

    async def consumptions(self, tenant: str, ids: Sequence[str]) -> Sequence[Consumption]:
        """Who took one of these artifacts of a tenant."""
        rows = await self._tables.run(queries.consumptions(tenant, ids))
        return [read_consumption(*row) for row in rows]

    async def weigh(self, groups: Sequence[Sequence[int]], most: int) -> Sequence[int]:
        """How many entries the terms of each group have, counted up to `most`."""
        [counts] = await self._tables.run(queries.weigh(groups, most))
        return counts

    async def aclose(self) -> None:
        """Close the connections and refuse everything from now on; again changes nothing."""
        await self._tables.aclose()
