"""Documents in PostgreSQL. A database is a schema, a collection is a table.

A table of documents has the columns `id` (the newest document has the highest) and `doc` (jsonb).
Without a database name, the connection's search path is used.
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

# The time limit in seconds for building an index, which reads the whole table.
INDEX_TIMEOUT = 600.0


class PostgresDocuments:
    """Documents in the tables of one PostgreSQL database."""

    def __init__(self, url: str, timeout: float = 5.0) -> None:
        self._server: PostgresServer = locate(url)
        self._timeout = timeout
        self._connections = Connections(url)
        self._closed = False

    async def newest(self, lookup: Lookup) -> Mapping[str, Json] | None:
        """The newest matching document; None also if the schema or table does not exist.

        Raises:
            DocumentsUnavailable: the server fails or does not answer in time.
            UsageError: a key is invalid, or the documents are closed.
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
                f"Cannot read a document in table {lookup.collection!r} of {self._server}: "
                f"{error}. Repair it."
            ) from error

    async def index(self, lookup: Lookup) -> bool:
        """Create an index on the key if the table exists; writers wait meanwhile."""
        if not self._can_hold(lookup):
            return False
        [(exists,)] = await self._run(queries.exists(lookup), lookup, self._timeout)
        if exists:
            await self._run(queries.index(lookup), lookup, INDEX_TIMEOUT)
        return exists

    async def aclose(self) -> None:
        """Close the connections and refuse all later calls. Idempotent."""
        self._closed = True
        await self._connections.aclose()

    def _can_hold(self, lookup: Lookup) -> bool:
        """Whether the lookup can match at all; raises if the key is invalid."""
        if self._closed:
            raise UsageError("The documents are closed. Open them again.")
        for key, _ in lookup.conditions:
            steps(key)
        names = [lookup.collection, *([] if lookup.database is None else [lookup.database])]
        return is_storable("".join([*names, lookup.texts])) and all(
            queries.is_name(name) for name in names
        )

    async def _run(
        self, statement: Composed, lookup: Lookup, limit: float
    ) -> Sequence[tuple[Any, ...]]:
        try:
            return await self._connections.run(statement, None, self._timeout, limit)
        except TimeoutError as error:
            raise self._server.timed_out(lookup, limit) from error
        except (errors.UndefinedTable, errors.InvalidSchemaName):
            raise
        except psycopg.Error as error:
            raise self._server.unavailable(lookup, error) from error
