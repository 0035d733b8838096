"""The tables of Procrastinate and of the scheduler in one PostgreSQL database."""

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from typing import Any, LiteralString, NamedTuple, TypeVar

import psycopg
from procrastinate import PsycopgConnector
from procrastinate.exceptions import ConnectorException
from procrastinate.manager import JobManager, get_channel_for_queues
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import dict_row
from psycopg.sql import SQL, Identifier
from psycopg_pool import AsyncConnectionPool

from turnloom.adapters.procrastinate.schema import (
    OURS,
    THEIRS,
    SchemaVersions,
    Session,
    known,
    missing,
    take_step,
    versions_in,
)
from turnloom.errors import StoreUnavailable, UsageError
from turnloom.kernel.cancels import heeding_cancels
from turnloom.runtime.spec import Migration

T = TypeVar("T")

# Connections of a process to the scheduler's tables, beside one that listens.
MOST = 3

# Seconds of silence after which a listener asks whether the server is still there.
ALIVE = 10.0

# Seconds until a statement that met a broken connection is tried again, and that a step of the
# schema may take.
PAUSE, MIGRATING = 0.05, 600.0


class JobServer(NamedTuple):
    """Where the server is, and the password to hide in messages."""

    place: str
    password: str

    def __str__(self) -> str:
        return f"PostgreSQL at {self.place}"

    def unavailable(self, error: BaseException | None) -> StoreUnavailable:
        """The error of a server that failed, with a remedy."""
        lines = str(error or "it does not answer").strip().splitlines()
        reason = lines[0].rstrip(".") if lines else type(error).__name__
        reason = reason.replace(self.password, "…") if self.password else reason
        return StoreUnavailable(
            f"{self} cannot be used: {reason}. Check that the server runs, and check the host, "
            "user, password and database in the URL of the store."
        )


def locate(url: str) -> JobServer:
    """The server that a URL points to.

    Raises:
        UsageError: the URL is not one of PostgreSQL.
    """
    try:
        parts = conninfo_to_dict(url)
    except psycopg.ProgrammingError:
        # libpq's message repeats parts of the URL, perhaps the password.
        raise UsageError(
            "Invalid URL of the store. Use postgresql://USER:PASSWORD@HOST:5432/DATABASE, with "
            "'%40' for '@' in a password."
        ) from None
    host = parts.get("host") or parts.get("hostaddr") or "localhost"
    return JobServer(f"{host}:{parts.get('port') or 5432}", str(parts.get("password") or ""))


class JobDatabase:
    """Runs statements on the tables, which are created on first use. A statement that meets a
    broken connection is tried again for `timeout` seconds, so every statement is idempotent.
    `listen_url` is the direct URL of the server, if a pooler stands between."""

    def __init__(self, url: str, timeout: float = 5.0, listen_url: str = "") -> None:
        self._url = url
        self._listen_url = listen_url or url
        self._timeout = timeout
        self._address = locate(url)
        self._connector = PsycopgConnector()
        self.manager = JobManager(self._connector)
        self._pool: AsyncConnectionPool[Any] | None = None
        self._opening = asyncio.Lock()
        self._closed = False

    async def call(self, query: LiteralString, **arguments: Any) -> Sequence[Mapping[str, Any]]:
        """The rows of a statement.

        Raises:
            StoreUnavailable: the server fails, or does not answer in time.
        """
        await self._open()

        async def execute() -> Sequence[Mapping[str, Any]]:
            assert self._pool is not None
            async with (
                self._pool.connection() as connection,
                connection.cursor(row_factory=dict_row) as cursor,
            ):
                await cursor.execute(query, arguments)
                return await cursor.fetchall() if cursor.description else ()

        return await self._patiently(execute)

    async def register(self) -> int:
        """Register a worker with Procrastinate; returns its number.

        Raises:
            StoreUnavailable: the server fails, or does not answer in time.
        """
        await self._open()
        return await self._patiently(self.manager.register_worker)

    async def unregister(self, worker: int) -> None:
        """Remove a worker; jobs that it still has are free for others.

        Raises:
            StoreUnavailable: the server fails, or does not answer in time.
        """
        await self._patiently(lambda: self.manager.unregister_worker(worker))

    async def listen(self, begun: Callable[[], None], hear: Callable[[str, int], None]) -> None:
        """Call `hear` with the type and the job of every notification of Procrastinate, on a
        connection of its own, until cancelled. `begun` is called first: what was told before is
        not heard.

        Raises:
            StoreUnavailable: the connection was lost.
        """
        await self._open()
        try:
            with heeding_cancels():
                await self._hear(begun, hear)
        except (psycopg.Error, OSError) as error:
            raise self._address.unavailable(error) from error

    async def _hear(self, begun: Callable[[], None], hear: Callable[[str, int], None]) -> None:
        async with await self._connect(self._listen_url) as session:
            for channel in get_channel_for_queues():
                await session.execute(SQL("LISTEN {}").format(Identifier(channel)))
            begun()
            while True:
                async for notice in session.notifies(timeout=ALIVE):
                    told = json.loads(notice.payload)
                    hear(told["type"], told["job_id"])
                await session.execute("SELECT 1")  # a peer that is gone says nothing

    async def aclose(self) -> None:
        """Close the connections, and refuse later calls. Idempotent."""
        self._closed = True
        pool, self._pool = self._pool, None
        if pool is not None:
            await pool.close()

    async def _patiently(self, act: Callable[[], Awaitable[T]], limit: float = 0) -> T:
        """Do it again while connections are broken, as after a restart of the server."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + (limit or self._timeout)
        while True:
            try:
                # psycopg loses a cancel if its connection breaks, and its pool if one comes free.
                with heeding_cancels():
                    async with asyncio.timeout_at(deadline):
                        return await act()
            except (TimeoutError, psycopg.Error, ConnectorException) as error:
                if isinstance(error, TimeoutError):
                    raise self._address.unavailable(None) from error
                cause = error if isinstance(error, psycopg.Error) else error.__cause__
                is_passing = isinstance(cause, psycopg.OperationalError) and not self._closed
                if not is_passing or loop.time() > deadline:
                    raise self._address.unavailable(cause) from error
            await asyncio.sleep(PAUSE)

    async def _open(self) -> None:
        if self._closed:
            raise UsageError("This scheduler is closed. Open a new one.")
        if self._pool is not None:
            return
        async with self._opening:
            if self._pool is not None:
                return
            await self._patiently(self._prepare)
            pool = self._make_pool(self._url)
            await pool.open()
            await self._connector.open_async(pool)
            self._pool = pool

    def _make_pool(self, url: str) -> AsyncConnectionPool[Any]:
        return AsyncConnectionPool(
            url,
            min_size=1,
            max_size=MOST,
            timeout=self._timeout,
            # A pooler gives each transaction another connection, which knows no statements.
            kwargs={"connect_timeout": max(1, round(self._timeout)), "prepare_threshold": None},
            configure=_configure,
            open=False,
        )

    # ------------------------------------------------------------------ schema

    async def pending(self) -> Sequence[Migration]:
        """The steps of the schema that are missing, in order; all of a database without our
        tables.

        Raises:
            StoreUnavailable: the tables are of a later release, or the server fails.
        """
        found = await self._patiently(lambda: self._in_session(versions_in))
        self._check_not_later(found)
        return [step.migration for step in missing(found)]

    async def migrate(self) -> AsyncGenerator[Migration, None]:
        """Take the missing steps, each in a transaction, and give each when it is taken.

        Raises:
            StoreUnavailable: the tables are of a later release, or the server fails; the steps that
                were given stay.
        """
        while await self.pending():
            taken = await self._patiently(lambda: self._in_session(take_step), MIGRATING)
            if taken is not None:
                yield taken.migration

    async def _prepare(self) -> None:
        """Create the tables, or check their version."""
        found = await self._in_session(versions_in)
        self._check_not_later(found)
        if found.ours == 0:
            await self._in_session(_create)
        elif missing(found):
            raise StoreUnavailable(
                f"The tables of the scheduler in {self._address} are of an earlier release "
                f"({_named(found)}; this release uses {_named(known())}). Stop the programs that "
                "use them, and run `turnloom store migrate`."
            )

    def _check_not_later(self, found: SchemaVersions) -> None:
        if found.ours > known().ours or (found.theirs or 0) > (known().theirs or 0):
            raise StoreUnavailable(
                f"The tables of the scheduler in {self._address} are of a later release "
                f"({_named(found)}; this release uses {_named(known())}). Install that release "
                "here, or choose another database for the store."
            )

    async def _in_session(self, act: Callable[[Session], Awaitable[T]]) -> T:
        """The result of a function that gets a connection of its own."""
        async with await self._connect(self._url) as session:
            return await act(session)

    async def _connect(self, url: str) -> Session:
        return await psycopg.AsyncConnection[dict[str, Any]].connect(
            url,
            row_factory=dict_row,
            connect_timeout=max(1, round(self._timeout)),
            autocommit=True,
        )


async def _configure(connection: psycopg.AsyncConnection[Any]) -> None:
    """Make each statement a transaction, so that it is one message to the server and back."""
    await connection.set_autocommit(True)


async def _create(session: Session) -> None:
    """Create the tables in one transaction; another process may do so at the same time."""
    async with session.transaction():
        while await take_step(session):
            pass


def _named(versions: SchemaVersions) -> str:
    return f"{OURS} {versions.ours}, {THEIRS} {versions.theirs or 'of its own'}"
