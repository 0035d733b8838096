"""Artifacts in PostgreSQL, for any number of machines."""

from collections.abc import AsyncGenerator, Sequence
from datetime import datetime
from typing import Any

import psycopg
from psycopg.types.json import Json as JsonValue

from turnloom.adapters.postgres import artifact_queries as queries
from turnloom.adapters.postgres.board_rows import added_artifacts, added_consumptions
from turnloom.adapters.postgres.database import Database, database_at, refusal
from turnloom.adapters.postgres.store_queries import ARTIFACT_EXISTS
from turnloom.board.logic.rows import instant_of, microseconds, read_consumption, rows_of
from turnloom.board.ports import ArtifactIndex
from turnloom.board.service import IndexedArtifacts
from turnloom.board.spec import Artifact, Consumption
from turnloom.board.spec.queries import ArtifactCount, IndexPlan, IndexStretch, StoredArtifact
from turnloom.errors import ArtifactExists, StoreUnavailable


class PostgresArtifacts(IndexedArtifacts):
    """Artifacts in one PostgreSQL database: that of a store, or another one of its own. A statement
    counts at most `window` of them. `follows_log` says whether artifacts in events of the store's
    log appear here at once."""

    window = 50_000

    def __init__(
        self, place: Database | str, timeout: float = 5.0, *, follows_log: bool = False
    ) -> None:
        self._is_own = isinstance(place, str)
        self._database = database_at(place, timeout)
        self.follows_log = follows_log

    async def put(self, tenant: str, artifacts: Sequence[Artifact]) -> None:
        """Store artifacts of a tenant in order, all or none; existing ones are unchanged.

        Raises:
            ArtifactExists: one exists with other content.
            InvalidArtifact: one cannot be stored.
            UsageError: the store is closed.
            StoreUnavailable: the server fails or does not answer in time; a retry may succeed.
        """
        given = added_artifacts(rows_of(tenant, artifacts))
        if not given:
            return await self._database.ready()
        try:
            await self._database.write(queries.PUT, JsonValue(given))
        except StoreUnavailable as error:
            code, id = refusal(error)
            if code == ARTIFACT_EXISTS:
                raise ArtifactExists(id) from error
            raise

    async def consume(self, tenant: str, consumptions: Sequence[Consumption]) -> None:
        """Store consumptions of a tenant, all or none; existing ones are unchanged.

        Raises:
            UsageError: the store is closed.
            StoreUnavailable: the server fails or does not answer in time; a retry may succeed.
        """
        given = added_consumptions(tenant, consumptions)
        if given:
            await self._database.write(queries.PUT, JsonValue(given))
        else:
            await self._database.ready()

    async def opened(self) -> ArtifactIndex:
        """This store, with its tables created.

        Raises:
            UsageError: the store is closed.
            StoreUnavailable: the server fails or does not answer in time.
        """
        await self._database.ready()
        return self

    async def upcoming(self, tenant: str, now: datetime, limit: int) -> Sequence[datetime]:
        """The next times at which artifacts become visible to a tenant, ascending."""
        rows = await self._database.rows(queries.upcoming(tenant, microseconds(now), limit))
        return [instant_of(number) for (number,) in rows]

    async def find(self, tenant: str, id: str) -> Sequence[StoredArtifact]:
        """The rows with an id that belong to the tenant or are shared, by number."""
        return [StoredArtifact(*row) for row in await self._database.rows(queries.find(tenant, id))]

    async def walk(self, plan: IndexPlan, most: int) -> IndexStretch:
        """The first rows of a plan in its order, each once, at most `most`."""
        found = await self._database.rows(queries.walk(plan, most))
        rows = [StoredArtifact(at, n, *row) for at, n, is_open, *row in found if is_open]
        return IndexStretch(rows, found[-1][:2] if len(found) == most else None)

    async def tally(self, plan: IndexPlan) -> Sequence[tuple[str, int]]:
        """The number of rows of a plan per visibility."""
        return [
            (text, count)
            async for window in self._windows(plan)
            for text, count in await self._database.rows(queries.tally(window))
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
            return await self._database.rows(queries.counts(window))
        except StoreUnavailable as error:
            if not isinstance(error.__cause__, psycopg.DataError):
                raise
            # The server cannot parse the data of a row as JSON, so rows are returned one by one.
            return await self._database.rows(queries.data(window))

    async def _windows(self, plan: IndexPlan) -> AsyncGenerator[IndexPlan, None]:
        """A plan in parts that are small enough to count within the statement timeout."""
        left = plan._replace(newest_first=False)
        while ends := await self._database.rows(queries.boundary(left, self.window)):
            [(at, n)] = ends
            yield left._replace(high=(at, n + 1))
            left = left.behind((at, n))
        yield left

    async def consumptions(self, tenant: str, ids: Sequence[str]) -> Sequence[Consumption]:
        """The consumptions of a tenant's artifacts."""
        rows = await self._database.rows(queries.consumptions(tenant, ids))
        return [read_consumption(*row) for row in rows]

    async def weigh(self, groups: Sequence[Sequence[int]], most: int) -> Sequence[int]:
        """The number of index entries of each group of terms, counted up to `most`."""
        [counts] = await self._database.rows(queries.weigh(groups, most))
        return counts

    async def aclose(self) -> None:
        """Close its own connections and refuse all later calls; those of a store close with it."""
        if self._is_own:
            await self._database.aclose()
