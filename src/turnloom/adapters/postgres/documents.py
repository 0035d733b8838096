"""Documents in PostgreSQL: a database is a schema, a collection is a table.

A table of documents has the columns `id` (the newest document has the highest) and `doc` (jsonb).
Where no database is named, the connection's search path finds the table.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import psycopg
from anyio import to_thread
from psycopg import errors
from psycopg.sql import Composed

from turnloom.adapters.postgres import queries
from turnloom.adapters.postgres.connections import Connections
from turnloom.adapters.postgres.faults import PostgresServer, locate
from turnloom.errors import DocumentsUnavailable, UsageError
from turnloom.kernel.values import Json
from turnloom.variables.logic.paths import is_storable, steps
from turnloom.variables.ports import Lookup

# Seconds that the building of an index may take: it reads the whole table.
BUILDING = 600.0


class PostgresDocuments:
    """Documents in the tables of one PostgreSQL database."""

    def __init__(self, url: str, timeout: float = 5.0) -> None:
        self._server: PostgresServer = locate(url)
        self._timeout = timeout
        self._connections = Connections(url)
        self._closed = False

    async def newest(self, lookup: Lookup) -> Mapping[str, Json] | None:
        """The newest document that fits; none also where there is no such schema or table.

        Raises:
            DocumentsUnavailable: the server does not answer, in time or at all.
            UsageError: a key cannot be one, or the documents are closed.
        """
        if not self._can_hold(lookup):
            return None
        try:
            rows = await self._run(queries.newest(lookup), lookup, self._timeout)
        except (errors.UndefinedTable, errors.InvalidSchemaName):
            return None
        if not rows:
            return None
        try:
            return await to_thread.run_sync(json.loads, rows[0][0])
        except (ValueError, RecursionError) as error:
            raise DocumentsUnavailable(
                f"A document in table {lookup.collection!r} of {self._server} cannot be read: "
                f"{error}. Repair it."
            ) from error

    async def index(self, lookup: Lookup) -> bool:
        """Index the key in its table, if there is such a table; writers wait meanwhile."""
        if not self._can_hold(lookup):
            return False
        [(exists,)] = await self._run(queries.exists(lookup), lookup, self._timeout)
        if exists:
            await self._run(queries.index(lookup), lookup, BUILDING)
        return exists

    async def aclose(self) -> None:
        """Close the connections and refuse everything from now on; again changes nothing."""
        self._closed = True
        await self._connections.aclose()

    def _can_hold(self, lookup: Lookup) -> bool:
        """Whether what is looked for can be there at all; refuses what makes no sense."""
        if self._closed:
            raise UsageError("The documents are closed, so nothing can be looked up any more.")
        steps(lookup.key)
        names = [lookup.collection, *([] if lookup.database is None else [lookup.database])]
        texts = [*names, lookup.value, lookup.tenant]
        return is_storable("".join(texts)) and all(queries.is_name(name) for name in names)

    async def _run(
        self, statement: Composed, lookup: Lookup, limit: float
    ) -> Sequence[tuple[Any, ...]]:
        try:
            return await self._connections.run(statement, self._timeout, limit)
        except TimeoutError as error:
            raise self._server.silent(lookup, limit) from error
        except (errors.UndefinedTable, errors.InvalidSchemaName):
            raise
        except psycopg.Error as error:
            raise self._server.unavailable(lookup, error) from error
