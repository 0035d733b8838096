"""Beliefs in PostgreSQL, for any number of machines."""

from collections.abc import Mapping, Sequence

from psycopg.types.json import Json as JsonValue

from turnloom.adapters.postgres.artifact_queries import PUT
from turnloom.adapters.postgres.board_rows import added_outcomes
from turnloom.adapters.postgres.database import Database, database_at
from turnloom.adapters.postgres.store_queries import EVIDENCE_OF
from turnloom.guards.spec import Belief, Observation, Pool


class PostgresBeliefs:
    """Beliefs about agents in one PostgreSQL database: that of a store, or another one of its own.
    `follows_log` says whether outcomes in events of the store's log appear here at once."""

    def __init__(
        self, place: Database | str, timeout: float = 5.0, *, follows_log: bool = False
    ) -> None:
        self._is_own = isinstance(place, str)
        self._database = database_at(place, timeout)
        self.follows_log = follows_log

    async def beliefs(self, pool: Pool, agents: Sequence[str]) -> Mapping[str, Belief]:
        """The beliefs about agents in a pool; agents without outcomes are left out.

        Raises:
            UsageError: the store is closed.
            StoreUnavailable: the server fails or does not answer in time.
        """
        rows = await self._database.rows(EVIDENCE_OF, *pool, list(agents))
        return {agent: Belief(successes, failures) for agent, successes, failures in rows}

    async def observe(self, observations: Sequence[Observation]) -> None:
        """Add outcomes, each once: known ones are ignored.

        Raises:
            UsageError: the store is closed.
            StoreUnavailable: nothing was added, or a retry finds it.
        """
        given = added_outcomes(observations)
        if given:
            await self._database.write(PUT, JsonValue(given))
        else:
            await self._database.ready()

    async def aclose(self) -> None:
        """Close its own connections and refuse all later calls; those of a store close with it."""
        if self._is_own:
            await self._database.aclose()
