"""Beliefs in PostgreSQL, for any number of machines.

The tables are made by whoever comes first, in the first schema of the connection's search path.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import anyio
import psycopg
from psycopg.sql import Composed

from weft.adapters.postgres import belief_queries as queries
from weft.adapters.postgres.connections import Connections
from weft.adapters.postgres.faults import Server, locate
from weft.errors import StoreUnavailable, UsageError
from weft.guards.spec import Belief, Observation, Pool


class PostgresBeliefs:
    """What is known of agents, in the tables of one PostgreSQL database, in which no log is."""

    follows_log = False

    def __init__(self, url: str, timeout: float = 5.0) -> None:
        self._server: Server = locate(url, "store")
        self._timeout = timeout
        self._connections = Connections(url)
        self._preparing = anyio.Lock()
        self._prepared = False
        self._closed = False

    async def beliefs(self, pool: Pool, agents: Sequence[str]) -> Mapping[str, Belief]:
        """What is known of these agents in a pool; nothing of those without any outcome.

        Raises:
            UsageError: the store is closed.
            StoreUnavailable: the server does not answer, in time or at all.
        """
        await self._prepare()
        rows = await self._run(queries.known(pool, agents))
        return {agent: Belief(successes, failures) for agent, successes, failures in rows}

    async def observe(self, observations: Sequence[Observation]) -> None:
        """Add outcomes, each at once and each once: one that is there already changes nothing.

        Raises:
            UsageError: the store is closed.
            StoreUnavailable: some may be there; the same may be tried again later.
        """
        await self._prepare()
        for each in observations:
            await self._run(queries.observe(each))

    async def aclose(self) -> None:
        """Close the connections and refuse everything from now on; again changes nothing."""
        self._closed = True
        await self._connections.aclose()

    async def _run(self, statement: Composed) -> Sequence[tuple[Any, ...]]:
        try:
            return await self._connections.run(statement, self._timeout, self._timeout)
        except TimeoutError as error:
            raise self._server.store_silent(self._timeout) from error
        except psycopg.Error as error:
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
        if version is None:
            await self._run(queries.PREPARE)
            version = await self._version()
        if version != queries.VERSION:
            raise StoreUnavailable(
                f"The beliefs in {self._server} were made by a later release of Weft (schema "
                f"{version}; this release knows {queries.VERSION}). Upgrade Weft, or choose "
                "another database for them."
            )

    async def _version(self) -> int | None:
        [(exists,)] = await self._run(queries.EXISTS)
        rows = await self._run(queries.SCHEMA) if exists else ()
        return rows[0][0] if rows else None
