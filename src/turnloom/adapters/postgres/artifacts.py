"""Artifacts in PostgreSQL, for any number of machines.

The tables are created on first use, in the first schema of the connection's search path.
"""

from collections.abc import AsyncGenerator, Sequence
from datetime import datetime
from typing import Any

import psycopg

from turnloom.adapters.postgres import artifact_queries as queries
from turnloom.adapters.postgres.connections import Tables
from turnloom.board.logic.rows import instant_of, microseconds, read_consumption, rows_of
from turnloom.board.ports import ArtifactIndex
from turnloom.board.service import IndexedArtifacts
from turnloom.board.spec import Artifact, Consumption
from turnloom.board.spec.queries import ArtifactCount, IndexPlan, IndexStretch, StoredArtifact
from turnloom.errors import ArtifactExists, StoreUnavailable


class PostgresArtifacts(IndexedArtifacts):
    """Artifacts in the tables of one PostgreSQL database, separate from the log. A statement counts
    at most `window` of them."""

    follows_log = False
    window = 50_000

    def __init__(self, url: str, timeout: float = 5.0) -> None:
        self._tables = Tables(url, timeout, queries.SCHEMA)

    async def put(self, tenant: str, artifacts: Sequence[Artifact]) -> None:
        """Store artifacts of a tenant in order, all or none; existing ones are unchanged.

        Raises:
            ArtifactExists: one exists with other content.
            InvalidArtifact: one cannot be stored.
            UsageError: the store is closed.
            StoreUnavailable: the server fails or does not answer in time; a retry may succeed.
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
        """Store consumptions of a tenant, all or none; existing ones are unchanged.

        Raises:
            UsageError: the store is closed.
            StoreUnavailable: the server fails or does not answer in time; a retry may succeed.
        """
        if consumptions:
            await self._tables.run(queries.consume(tenant, consumptions))
        else:
            await self._tables.prepare()

    async def opened(self) -> ArtifactIndex:
        """This store, with its tables created.

        Raises:
            UsageError: the store is closed.
            StoreUnavailable: the server fails or does not answer in time.
        """
        await self._tables.prepare()
        return self

    async def upcoming(self, tenant: str, now: datetime, limit: int) -> Sequence[datetime]:
        """The next times at which artifacts become visible to a tenant, ascending."""
        rows = await self._tables.run(queries.upcoming(tenant, microseconds(now), limit))
        return [instant_of(number) for (number,) in rows]

    async def find(self, tenant: str, id: str) -> Sequence[StoredArtifact]:
        """The rows with an id that belong to the tenant or are shared, by number."""
        return [StoredArtifact(*row) for row in await self._tables.run(queries.find(tenant, id))]

    async def walk(self, plan: IndexPlan, most: int) -> IndexStretch:
        """The first rows of a plan in its order, each once, at most `most`."""
        found = await self._tables.run(queries.walk(plan, most))
        rows = [StoredArtifact(at, n, *row) for at, n, is_open, *row in found if is_open]
        return IndexStretch(rows, found[-1][:2] if len(found) == most else None)

    async def tally(self, plan: IndexPlan) -> Sequence[tuple[str, int]]:
        """The number of rows of a plan per visibility."""
        return [
            (text, count)
            async for window in self._windows(plan)
            for text, count in await self._tables.run(queries.tally(window))
        ]

    async def counts(self, plan: IndexPlan) -> Sequence[ArtifactCount]:
        """The number of rows of a plan per visibility and traits."""
        return [
            ArtifactCount(*row)
            async for window in self._windows(plan)
            for row in await self._count(window)
        ]

    async def _count(self, window: IndexPlan) -> Sequence[tuple[Any, ...]]:
        try:
            return await self._tables.run(queries.counts(window))
        except StoreUnavailable as error:
            if not isinstance(error.__cause__, psycopg.DataError):
                raise
            # The server cannot parse the data of a row as JSON, so rows are returned one by one.
            return await self._tables.run(queries.data(window))

    async def _windows(self, plan: IndexPlan) -> AsyncGenerator[IndexPlan, None]:
        """A plan in parts that are small enough to count within the statement timeout."""
        left = plan._replace(newest_first=False)
        while ends := await self._tables.run(queries.boundary(left, self.window)):
            [(at, n)] = ends
            yield left._replace(high=(at, n + 1))
            left = left.behind((at, n))
        yield left

    async def consumptions(self, tenant: str, ids: Sequence[str]) -> Sequence[Consumption]:
        """The consumptions of a tenant's artifacts."""
        rows = await self._tables.run(queries.consumptions(tenant, ids))
        return [read_consumption(*row) for row in rows]

    async def weigh(self, groups: Sequence[Sequence[int]], most: int) -> Sequence[int]:
        """The number of index entries of each group of terms, counted up to `most`."""
        [counts] = await self._tables.run(queries.weigh(groups, most))
        return counts

    async def aclose(self) -> None:
        """Close the connections and refuse all later calls. Idempotent."""
        await self._tables.aclose()
