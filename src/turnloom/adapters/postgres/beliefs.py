"""Beliefs in PostgreSQL, for any number of machines.

The tables are created on first use, in the first schema of the connection's search path.
"""

from collections.abc import Mapping, Sequence

from turnloom.adapters.postgres import belief_queries as queries
from turnloom.adapters.postgres.connections import Tables
from turnloom.guards.spec import Belief, Observation, Pool


class PostgresBeliefs:
    """Beliefs about agents in the tables of one PostgreSQL database, separate from the log."""

    follows_log = False

    def __init__(self, url: str, timeout: float = 5.0) -> None:
        self._tables = Tables(url, timeout, queries.SCHEMA)

    async def beliefs(self, pool: Pool, agents: Sequence[str]) -> Mapping[str, Belief]:
        """The beliefs about agents in a pool; agents without outcomes are left out.

        Raises:
            UsageError: the store is closed.
            StoreUnavailable: the server fails or does not answer in time.
        """
        rows = await self._tables.run(queries.known(pool, agents))
        return {agent: Belief(successes, failures) for agent, successes, failures in rows}

    async def observe(self, observations: Sequence[Observation]) -> None:
        """Add outcomes, each once: known ones are ignored.

        Raises:
            UsageError: the store is closed.
            StoreUnavailable: some may have been added; a retry may succeed.
        """
        await self._tables.prepare()
        for each in observations:
            await self._tables.run(queries.observe(each))

    async def aclose(self) -> None:
        """Close the connections and refuse all later calls. Idempotent."""
        await self._tables.aclose()
