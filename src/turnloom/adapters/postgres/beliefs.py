"""Beliefs in PostgreSQL, for any number of machines.

The tables are made by whoever comes first, in the first schema of the connection's search path.
"""

from collections.abc import Mapping, Sequence

from turnloom.adapters.postgres import belief_queries as queries
from turnloom.adapters.postgres.connections import Tables
from turnloom.guards.spec import Belief, Observation, Pool


class PostgresBeliefs:
    """What is known of agents, in the tables of one PostgreSQL database, in which no log is."""

    follows_log = False

    def __init__(self, url: str, timeout: float = 5.0) -> None:
        self._tables = Tables(url, timeout, queries.SCHEMA)

    async def beliefs(self, pool: Pool, agents: Sequence[str]) -> Mapping[str, Belief]:
        """What is known of these agents in a pool; nothing of those without any outcome.

        Raises:
            UsageError: the store is closed.
            StoreUnavailable: the server does not answer, in time or at all.
        """
        rows = await self._tables.run(queries.known(pool, agents))
        return {agent: Belief(successes, failures) for agent, successes, failures in rows}

    async def observe(self, observations: Sequence[Observation]) -> None:
        """Add outcomes, each at once and each once: one that is there already changes nothing.

        Raises:
            UsageError: the store is closed.
            StoreUnavailable: some may be there; the same may be tried again later.
        """
        await self._tables.prepare()
        for each in observations:
            await self._tables.run(queries.observe(each))

    async def aclose(self) -> None:
        """Close the connections and refuse everything from now on; again changes nothing."""
        await self._tables.aclose()
