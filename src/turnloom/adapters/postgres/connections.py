"""Connections to one PostgreSQL server, and the creation of its tables."""

import socket
from asyncio import get_running_loop
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import anyio
import psycopg
from psycopg import AsyncConnection, AsyncCursor, OperationalError
from psycopg.pq import TransactionStatus
from psycopg.sql import SQL, Composed, Literal

from turnloom.adapters.postgres.faults import PostgresServer, locate
from turnloom.errors import StoreUnavailable, UsageError

# The maximum number of connections per store.
MAX_CONNECTIONS = 8


class Connections:
    """A pool of connections, each used by one statement at a time."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._idle: list[AsyncConnection[tuple[Any, ...]]] = []
        self._slots = anyio.Semaphore(MAX_CONNECTIONS)
        self._closed = False

    async def run(
        self, statement: Composed, opening: float, running: float
    ) -> Sequence[tuple[Any, ...]]:
        """The rows of a statement; of several statements, those of the last one with rows.

        Raises:
            TimeoutError: no connection was available within `opening` seconds, or the statement
            took longer than `running` seconds.
            psycopg.Error: the server or the network failed.
        """
        deadline = anyio.current_time() + opening
        with anyio.fail_after(opening):
            await self._slots.acquire()
        try:
            if self._idle:
                connection = self._idle.pop()
                try:
                    return await self._use(connection, statement, running)
                except OperationalError:
                    if not connection.closed:
                        raise
                    # The server was restarted, so all idle connections are broken.
                    await self._drop()
            with anyio.fail_after(deadline - anyio.current_time()):
                connection = await AsyncConnection.connect(
                    self._url, autocommit=True, prepare_threshold=None
                )
            return await self._use(connection, statement, running)
        finally:
            self._slots.release()

    async def aclose(self) -> None:
        """Close idle connections now, and others when they are done."""
        self._closed = True
        await self._drop()

    async def _drop(self) -> None:
        while self._idle:
            await self._idle.pop().close()

    async def _use(
        self, connection: AsyncConnection[tuple[Any, ...]], statement: Composed, limit: float
    ) -> Sequence[tuple[Any, ...]]:
        timed_out: list[bool] = []

        def disconnect() -> None:
            timed_out.append(True)
            _shut_down(connection.pgconn.socket)

        timer = get_running_loop().call_later(limit, disconnect)
        try:
            return await _rows(await connection.execute(statement))
        except OperationalError as error:
            if timed_out:
                raise TimeoutError from error
            raise
        finally:
            timer.cancel()
            usable = connection.info.transaction_status == TransactionStatus.IDLE
            if usable and not self._closed:
                self._idle.append(connection)
            else:
                await connection.close()


async def _rows(cursor: AsyncCursor[tuple[Any, ...]]) -> Sequence[tuple[Any, ...]]:
    """The rows of the last statement that returns rows."""
    rows: Sequence[tuple[Any, ...]] = ()
    more: bool | None = True
    while more:
        if cursor.description:
            rows = await cursor.fetchall()
        more = cursor.nextset()
    return rows


def _shut_down(descriptor: int) -> None:
    """Shut down a socket that psycopg owns, which wakes its waiters."""
    peer = socket.socket(fileno=descriptor)
    try:
        with suppress(OSError):  # already closed by the server
            peer.shutdown(socket.SHUT_RDWR)
    finally:
        peer.detach()


_EXISTS = SQL("SELECT to_regclass('turnloom_schema') IS NOT NULL").format()
_VERSION = SQL("SELECT version FROM turnloom_schema WHERE part = {part}")


@dataclass(frozen=True, slots=True)
class Schema:
    """A part of the store: its name in `turnloom_schema`, its version in this release, and the
    statement that creates its tables."""

    part: str
    version: int
    prepare: Composed


class Tables:
    """The tables of one part of a store in one PostgreSQL database."""

    def __init__(self, url: str, timeout: float, schema: Schema) -> None:
        self._server: PostgresServer = locate(url, "store")
        self._timeout = timeout
        self._schema = schema
        self._connections = Connections(url)
        self._preparing = anyio.Lock()
        self._prepared = False
        self._closed = False

    async def run(self, statement: Composed) -> Sequence[tuple[Any, ...]]:
        """The rows of a statement.

        Raises:
            UsageError: the store is closed.
            StoreUnavailable: the server fails or does not answer in time.
        """
        await self.prepare()
        return await self._run(statement)

    async def prepare(self) -> None:
        """Create the tables if needed, and check their version."""
        if self._closed:
            raise UsageError("This store is closed. Open a new one.")
        if self._prepared:
            return
        async with self._preparing:
            if not self._prepared:
                await self._create_or_check()
                self._prepared = True

    async def aclose(self) -> None:
        """Close the connections and refuse all later calls. Idempotent."""
        self._closed = True
        await self._connections.aclose()

    async def _run(self, statement: Composed) -> Sequence[tuple[Any, ...]]:
        try:
            return await self._connections.run(statement, self._timeout, self._timeout)
        except TimeoutError as error:
            raise self._server.store_timed_out(self._timeout) from error
        except psycopg.Error as error:
            raise self._server.store_unavailable(error) from error

    async def _create_or_check(self) -> None:
        known, version = self._schema.version, await self._version()
        if version is None:
            await self._run(self._schema.prepare)
            version = await self._version()
        if version != known:
            raise StoreUnavailable(
                f"The {self._schema.part} tables in {self._server} were created by another release "
                f"of Turnloom (schema {version}; this release uses {known}). Use that release, or "
                "choose another database for the store."
            )

    async def _version(self) -> int | None:
        [(exists,)] = await self._run(_EXISTS)
        part = _VERSION.format(part=Literal(self._schema.part))
        rows = await self._run(part) if exists else ()
        return rows[0][0] if rows else None
