"""The tables of Procrastinate and of the scheduler in one PostgreSQL database."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from importlib.resources import files
from typing import Any, LiteralString, NamedTuple, TypeVar, cast

import psycopg
from procrastinate import PsycopgConnector
from procrastinate.exceptions import ConnectorException
from procrastinate.manager import JobManager
from procrastinate.schema import SchemaManager
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import dict_row
from psycopg_pool import AsyncConnectionPool

from turnloom.adapters.procrastinate import queries
from turnloom.errors import StoreUnavailable, UsageError

T = TypeVar("T")

# The version of the tables in this release: one file in `schema/` each.
VERSION = 1

# Connections of a process to the scheduler's tables, beside one that listens.
MOST = 3

# Seconds until a statement that met a broken connection is tried again.
PAUSE = 0.05

_log = logging.getLogger("turnloom.procrastinate")


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

    async def listen(self, hear: Callable[[str, int], None]) -> None:
        """Call `hear` with the type and the job of every notification of Procrastinate, on a
        connection of its own, until cancelled.

        Raises:
            StoreUnavailable: the connection was lost.
        """
        await self._open()

        async def on_notification(*, channel: str, notification: Any) -> None:
            hear(notification["type"], notification["job_id"])

        # Procrastinate connects on its own, to where this pool would.
        direct = PsycopgConnector()
        await direct.open_async(self._make_pool(self._listen_url))
        try:
            await JobManager(direct).listen_for_jobs(on_notification=on_notification)
        except (ConnectorException, psycopg.Error, OSError) as error:
            raise self._address.unavailable(error.__cause__ or error) from error

    async def aclose(self) -> None:
        """Close the connections, and refuse later calls. Idempotent."""
        self._closed = True
        pool, self._pool = self._pool, None
        if pool is not None:
            await pool.close()

    async def _patiently(self, act: Callable[[], Awaitable[T]]) -> T:
        """Do it again while connections are broken, as after a restart of the server."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._timeout
        while True:
            try:
                async with asyncio.timeout_at(deadline):
                    return await act()
            except TimeoutError as error:
                raise self._address.unavailable(None) from error
            except (psycopg.Error, ConnectorException) as error:
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
            open=False,
        )

    async def _prepare(self) -> None:
        """Create the tables, or check their version."""
        async with await psycopg.AsyncConnection[dict[str, Any]].connect(
            self._url, row_factory=dict_row, connect_timeout=max(1, round(self._timeout))
        ) as connection:
            found = await _one(connection, queries.IS_THERE)
            found = await _one(connection, queries.VERSION) if found and found["ours"] else None
            if found is None:
                await self._create(connection)
            elif found["version"] != VERSION:
                raise StoreUnavailable(
                    f"The tables of the scheduler in {self._address} are of another release of "
                    f"Turnloom (schema {found['version']}; this release uses {VERSION}). Use that "
                    "release, or choose another database for the store."
                )

    async def _create(self, connection: psycopg.AsyncConnection[dict[str, Any]]) -> None:
        """Create the tables in one transaction; another process may do so at the same time."""
        async with connection.transaction():
            await connection.execute(queries.BEGIN_SCHEMA)
            if await _one(connection, queries.VERSION):
                return
            there = await _one(connection, queries.IS_THERE)
            if not (there and there["theirs"]):
                await connection.execute(SchemaManager.get_schema())
            for number in range(1, VERSION + 1):
                text = (files(__package__ or "") / "schema" / f"{number:03d}.sql").read_text(
                    "utf-8"
                )
                await connection.execute(cast(LiteralString, text))
            await connection.execute(queries.END_SCHEMA, {"version": VERSION})


async def _one(
    connection: psycopg.AsyncConnection[dict[str, Any]], query: LiteralString
) -> dict[str, Any] | None:
    return await (await connection.execute(query)).fetchone()
