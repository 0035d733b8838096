"""Runs in PostgreSQL whose wake was missed."""

from collections.abc import Sequence
from datetime import timedelta

from turnloom.adapters.postgres import store_queries as queries
from turnloom.adapters.postgres.database import Database
from turnloom.log.spec import RunKey


class PostgresBacklog:
    """Finds runs that should be driven, by the clock of the database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def overdue(self, seconds: float, limit: int) -> Sequence[RunKey]:
        """At most `limit` runs of all tenants that no process holds, and that were started or got
        mail this long ago, and neither rest nor ended since.

        Raises:
            StoreUnavailable: the server fails or does not answer in time.
        """
        age = timedelta(seconds=seconds)
        rows = await self._database.rows(queries.OVERDUE, age=age, most=limit)
        return [RunKey(*row) for row in rows]
