"""Connections to one server: opened when needed, kept for the next, dropped when in doubt.

A pool that connects in the background can tell neither why it could not nor that a kept connection
is dead before somebody waits on it. Here a connection is opened by whoever needs it, so the reason
arrives at once; and psycopg's own cancellation, which asks a silent server for ten seconds to stop,
is never waited for: a statement out of time loses its socket.
"""

import socket
from asyncio import get_running_loop
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import anyio
from psycopg import AsyncConnection, AsyncCursor, OperationalError
from psycopg.pq import TransactionStatus
from psycopg.sql import Composed

# Connections that one store has at most.
MOST = 8


class Connections:
    """At most `MOST` connections, each used by one statement at a time."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._idle: list[AsyncConnection[tuple[Any, ...]]] = []
        self._slots = anyio.Semaphore(MOST)
        self._closed = False

    async def run(
        self, statement: Composed, opening: float, running: float
    ) -> Sequence[tuple[Any, ...]]:
        """The rows that a statement gives; of several statements, the last ones given.

        Raises:
            TimeoutError: no connection was to be had within `opening` seconds, or the statement
                was not done within `running` seconds.
            psycopg.Error: the server or the network said no.
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
                    # The server went away meanwhile, and with it every connection to it.
                    await self._drop()
            with anyio.fail_after(deadline - anyio.current_time()):
                connection = await AsyncConnection.connect(
                    self._url, autocommit=True, prepare_threshold=None
                )
            return await self._use(connection, statement, running)
        finally:
            self._slots.release()

    async def aclose(self) -> None:
        """Close what is idle now, and the others when they are done."""
        self._closed = True
        await self._drop()

    async def _drop(self) -> None:
        while self._idle:
            await self._idle.pop().close()

    async def _use(
        self, connection: AsyncConnection[tuple[Any, ...]], statement: Composed, limit: float
    ) -> Sequence[tuple[Any, ...]]:
        severed: list[bool] = []

        def sever() -> None:
            severed.append(True)
            _shut(connection.pgconn.socket)

        timer = get_running_loop().call_later(limit, sever)
        try:
            return await _rows(await connection.execute(statement))
        except OperationalError as error:
            if severed:
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
    """The rows of the last statement that gives some, or would."""
    rows: Sequence[tuple[Any, ...]] = ()
    more: bool | None = True
    while more:
        if cursor.description:
            rows = await cursor.fetchall()
        more = cursor.nextset()
    return rows


def _shut(descriptor: int) -> None:
    """End both directions of a socket that psycopg owns; whoever waits on it is told."""
    peer = socket.socket(fileno=descriptor)
    try:
        with suppress(OSError):  # the other side was faster
            peer.shutdown(socket.SHUT_RDWR)
    finally:
        peer.detach()
