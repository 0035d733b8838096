"""Connections to one PostgreSQL server."""

import socket
from asyncio import get_running_loop
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeVar

import anyio
from psycopg import AsyncConnection, AsyncCursor, OperationalError
from psycopg.abc import QueryNoTemplate as Query
from psycopg.pq import TransactionStatus

from turnloom.adapters.postgres.faults import is_crowded
from turnloom.kernel.cancels import heeding_cancels

T = TypeVar("T")
Session = AsyncConnection[tuple[Any, ...]]
Rows = Sequence[tuple[Any, ...]]

# The maximum number of connections per store; one of them is for statements that cannot wait.
MAX_CONNECTIONS = 8

# Seconds between two attempts to get one of a server that has too many.
PAUSE = 0.1


class Connections:
    """A pool of connections, each used by one statement or transaction at a time.

    Statements are not prepared, and leave nothing behind in a session, so that a pooler may stand
    between. The first failure to connect is raised as it is, without further attempts.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._idle: list[Session] = []
        self._slots = anyio.Semaphore(MAX_CONNECTIONS - 1)
        self._prompt_slot = anyio.Semaphore(1)
        self._used = 0
        self._answered = 0.0
        self._closed = False

    async def run(
        self,
        statement: Query,
        values: Sequence[Any] | Mapping[str, Any] | None,
        opening: float,
        running: float,
        *,
        prompt: bool = False,
    ) -> Rows:
        """The rows of a statement; of several statements, those of the last one with rows. A
        `prompt` one does not wait for others.

        Raises:
            TimeoutError: no connection was available within `opening` seconds, or the statement
            took longer than `running` seconds.
            psycopg.Error: the server or the network failed.
        """

        async def execute(session: Session) -> Rows:
            async with session.cursor(binary=values is not None) as cursor:
                return await _rows(await cursor.execute(statement, values))

        return await self.use(execute, opening, running, prompt=prompt)

    async def use(
        self,
        work: Callable[[Session], Awaitable[T]],
        opening: float,
        running: float,
        *,
        prompt: bool = False,
    ) -> T:
        """The result of a function that gets a connection; one that it leaves inside a transaction
        is closed.

        A connection that turns out to be broken is replaced, and the function called again: it
        must do no harm twice.

        However many wait for their turn, they wait as long as the server answers others.

        Raises:
            TimeoutError: the server did not answer anything, or did not connect, within `opening`
            seconds, or the function took longer than `running` seconds.
            psycopg.Error: the server or the network failed.
        """
        slots = self._prompt_slot if prompt else self._slots
        await self._take(slots, opening)
        self._used += 1
        deadline = anyio.current_time() + opening
        try:
            if self._idle:
                session = self._idle.pop()
                try:
                    return await self._use(session, work, running)
                except OperationalError:
                    if not session.closed:
                        raise
                    # The server was restarted, so all idle connections are broken.
                    await self._drop()
            with anyio.fail_after(deadline - anyio.current_time()):
                session = await self._connect()
            return await self._use(session, work, running)
        finally:
            self._used -= 1
            slots.release()

    async def aclose(self) -> None:
        """Close idle connections now, and others when they are done."""
        self._closed = True
        await self._drop()

    async def _take(self, slots: anyio.Semaphore, limit: float) -> None:
        """Wait for a slot; give up if the server answers nothing for so many seconds."""
        loop = get_running_loop()
        began = loop.time()
        with anyio.CancelScope() as scope:

            def look() -> None:
                nonlocal timer
                rest = max(began, self._answered) + limit - loop.time()
                if rest > 0:
                    timer = loop.call_later(rest, look)
                else:
                    scope.cancel()

            timer = loop.call_later(limit, look)
            try:
                await slots.acquire()
            finally:
                timer.cancel()
        if scope.cancelled_caught:
            raise TimeoutError

    async def _connect(self) -> Session:
        """A new connection, or one that became free while the server had too many."""
        while True:
            try:
                return await connect(self._url)
            except OperationalError as error:
                if not is_crowded(error) or self._used == 1:
                    raise  # or no other of ours is in use, so none becomes free
                await anyio.sleep(PAUSE)
                if self._idle:
                    return self._idle.pop()

    async def _drop(self) -> None:
        while self._idle:
            await self._idle.pop().close()

    async def _use(
        self, session: Session, work: Callable[[Session], Awaitable[T]], limit: float
    ) -> T:
        try:
            # psycopg loses a cancel if its connection breaks.
            with heeding_cancels():
                async with time_limit(session, limit):
                    result = await work(session)
                self._answered = get_running_loop().time()
                return result
        finally:
            usable = session.info.transaction_status == TransactionStatus.IDLE
            if usable and not self._closed:
                self._idle.append(session)
            else:
                await session.close()


async def connect(url: str) -> Session:
    """A connection in autocommit mode, which prepares no statements and gets text as UTF-8."""
    return await AsyncConnection.connect(
        url, autocommit=True, prepare_threshold=None, client_encoding="utf8"
    )


@asynccontextmanager
async def time_limit(session: Session, limit: float) -> AsyncGenerator[None, None]:
    """Disconnect when the time is over, which wakes whatever waits for the server.

    Raises:
        TimeoutError: the time is over.
    """
    timed_out: list[bool] = []

    def disconnect() -> None:
        timed_out.append(True)
        _shut_down(session.pgconn.socket)

    timer = get_running_loop().call_later(limit, disconnect)
    try:
        yield
    except OperationalError as error:
        if timed_out:
            raise TimeoutError from error
        raise
    finally:
        timer.cancel()


async def _rows(cursor: AsyncCursor[tuple[Any, ...]]) -> Rows:
    """The rows of the last statement that returns rows."""
    rows: Rows = ()
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
