"""The tables of one part of a store, made by whoever comes first."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import anyio
import psycopg
from psycopg.sql import SQL, Composed, Literal

from turnloom.adapters.postgres.connections import Connections
from turnloom.adapters.postgres.faults import Server, locate
from turnloom.errors import StoreUnavailable, UsageError

_EXISTS = SQL("SELECT to_regclass('turnloom_schema') IS NOT NULL").format()
_VERSION = SQL("SELECT version FROM turnloom_schema WHERE part = {part}")


@dataclass(frozen=True, slots=True)
class Schema:
    """What a part is called in `turnloom_schema`, the version that this release knows, and the
    statement that makes its tables."""

    part: str
    version: int
    prepare: Composed


class Tables:
    """The tables of one part of a store in one PostgreSQL database."""

    def __init__(self, url: str, timeout: float, schema: Schema) -> None:
        self._server: Server = locate(url, "store")
        self._timeout = timeout
        self._schema = schema
        self._connections = Connections(url)
        self._preparing = anyio.Lock()
        self._prepared = False
        self._closed = False

    async def run(self, statement: Composed) -> Sequence[tuple[Any, ...]]:
        """The rows that a statement gives.

        Raises:
            UsageError: the store is closed.
            StoreUnavailable: the server does not answer, in time or at all, or says no.
        """
        await self.prepare()
        return await self._run(statement)

    async def prepare(self) -> None:
        """See that the tables are there and of this release."""
        if self._closed:
            raise UsageError("This store is closed. Open a new one.")
        if self._prepared:
            return
        async with self._preparing:
            if not self._prepared:
                await self._examine()
                self._prepared = True

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

    async def _examine(self) -> None:
        known, version = self._schema.version, await self._version()
        if version is None:
            await self._run(self._schema.prepare)
            version = await self._version()
        if version != known:
            raise StoreUnavailable(
                f"The {self._schema.part} tables in {self._server} were made by another release "
                f"of Turnloom (schema {version}; this release knows {known}). Use that release, or "
                "choose another database for the store."
            )

    async def _version(self) -> int | None:
        [(exists,)] = await self._run(_EXISTS)
        part = _VERSION.format(part=Literal(self._schema.part))
        rows = await self._run(part) if exists else ()
        return rows[0][0] if rows else None
