"""Artifacts in PostgreSQL, for any number of machines.

The tables are made by whoever comes first, in the first schema of the connection's search path.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import anyio
import psycopg
from psycopg.sql import Composed

from weft.adapters.postgres import artifact_queries as queries
from weft.adapters.postgres.connections import Connections
from weft.adapters.postgres.faults import Server, locate
from weft.board.logic.rows import instant_of, microseconds, read_consumption, rows_of
from weft.board.service import Reading
from weft.board.spec import Artifact, Consumption, FilterConfig, Page, Reader, Summary
from weft.board.spec.index import Found, Plan
from weft.errors import ArtifactExists, StoreUnavailable, UsageError


class PostgresArtifacts:
    """Artifacts in the tables of one PostgreSQL database, in which no log is."""

    follows_log = False

    def __init__(self, url: str, timeout: float = 5.0) -> None:
        self._server: Server = locate(url, "store")
        self._timeout = timeout
        self._connections = Connections(url)
        self._preparing = anyio.Lock()
        self._prepared = False
        self._closed = False

    async def put(self, artifacts: Sequence[Artifact]) -> None:
        """Keep artifacts in their order, all or none; one that is there already changes nothing.

        Raises:
            ArtifactExists: one is there with other content.
            InvalidArtifact: one cannot be kept as it is.
            UsageError: the store is closed.
            StoreUnavailable: the server does not answer, in time or at all; the same may be tried
                again later.
        """
        if rows := rows_of(artifacts):
            await self._rows(queries.put(rows))
        else:
            await self._prepare()

    async def consume(self, consumptions: Sequence[Consumption]) -> None:
        """Keep who took what, all or none; one that is there already changes nothing.

        Raises:
            UsageError: the store is closed.
            StoreUnavailable: the server does not answer, in time or at all; the same may be tried
                again later.
        """
        if consumptions:
            await self._rows(queries.consume(consumptions))
        else:
            await self._prepare()

    async def get(self, id: str, reader: Reader, now: datetime) -> Artifact | None:
        """The artifact of this id as a copy; none if there is none that the reader may see."""
        return await Reading(self, reader, now).get(id)

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
        await self._prepare()
        return await Reading(self, reader, now).query(filter, cursor, count, embed_meta)

    async def summary(self, filter: FilterConfig, reader: Reader, now: datetime) -> Summary:
        """How many there are of what the filter asks for and the reader may see."""
        await self._prepare()
        return await Reading(self, reader, now).summary(filter)

    async def upcoming(self, now: datetime, limit: int) -> Sequence[datetime]:
        """The next instants at which something becomes visible that is not yet, soonest first."""
        rows = await self._rows(queries.upcoming(microseconds(now), limit))
        return [instant_of(number) for (number,) in rows]

    async def find(self, id: str) -> Found | None:
        """The row of an artifact."""
        rows = await self._rows(queries.find(id))
        return Found(*rows[0]) if rows else None

    async def walk(self, plan: Plan, most: int) -> Sequence[Found]:
        """The first rows of a plan in its direction, each once."""
        return [Found(*row) for row in await self._rows(queries.walk(plan, most))]

    async def tally(self, plan: Plan) -> Sequence[tuple[str, int]]:
        """How many rows of a plan have which visibility."""
        return [(text, count) for text, count in await self._rows(queries.tally(plan))]

    async def consumptions(self, ids: Sequence[str]) -> Sequence[Consumption]:
        """Who took one of these artifacts."""
        rows = await self._rows(queries.consumptions(ids))
        return [read_consumption(*row) for row in rows]

    async def weigh(self, groups: Sequence[Sequence[int]], most: int) -> Sequence[int]:
        """How many entries the terms of each group have, counted up to `most`."""
        [counts] = await self._rows(queries.weigh(groups, most))
        return counts

    async def aclose(self) -> None:
        """Close the connections and refuse everything from now on; again changes nothing."""
        self._closed = True
        await self._connections.aclose()

    async def _rows(self, statement: Composed) -> Sequence[tuple[Any, ...]]:
        await self._prepare()
        return await self._run(statement)

    async def _run(self, statement: Composed) -> Sequence[tuple[Any, ...]]:
        try:
            return await self._connections.run(statement, self._timeout, self._timeout)
        except TimeoutError as error:
            raise self._server.store_silent(self._timeout) from error
        except psycopg.Error as error:
            if error.sqlstate == queries.TAKEN:
                raise ArtifactExists(error.diag.message_primary or "") from error
            raise self._server.store_unavailable(error) from error

    async def _prepare(self) -> None:
        """See that the tables are there and of this release."""
        if self._closed:
            raise UsageError("This store is closed. Open a new one.")
        if self._prepared:
            return
        async with self._preparing:
            if not self._prepared:
                await self._examine()
                self._prepared = True

    async def _examine(self) -> None:
        version = await self._version()
        if version is None or version < queries.VERSION:
            await self._run(queries.PREPARE)
            version = await self._version()
        if version != queries.VERSION:
            raise StoreUnavailable(
                f"The board in {self._server} was made by a later release of Weft (schema "
                f"{version}; this release knows {queries.VERSION}). Upgrade Weft, or choose "
                "another database for the store."
            )

    async def _version(self) -> int | None:
        [(exists,)] = await self._run(queries.EXISTS)
        rows = await self._run(queries.SCHEMA) if exists else ()
        return rows[0][0] if rows else None
