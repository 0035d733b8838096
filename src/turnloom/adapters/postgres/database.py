"""One PostgreSQL database as a store: its tables, and statements that survive lost connections."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import anyio
import psycopg
from psycopg.abc import QueryNoTemplate as Query

from turnloom.adapters.postgres.clock import PostgresClock
from turnloom.adapters.postgres.connections import Connections, Rows, Session
from turnloom.adapters.postgres.faults import PostgresServer, is_passing, locate
from turnloom.adapters.postgres.schema import Schema, schema_of, take_step, version_of
from turnloom.errors import StoreUnavailable, UsageError

T = TypeVar("T")

# Seconds for which a statement is repeated.
PATIENCE = 20.0
# Seconds before the first repetition; each further one waits twice as long, up to a second.
PAUSE = 0.05
# Seconds that creating tables may take.
MIGRATING = 600.0


class Database:
    """The tables of one part of a store in one PostgreSQL database, created on first use.

    `patience` is the number of seconds for which a statement is repeated while the server restarts
    or the network fails.
    """

    def __init__(
        self,
        url: str,
        timeout: float,
        schema: Schema,
        clock: PostgresClock | None = None,
        *,
        patience: float = PATIENCE,
    ) -> None:
        self.clock = clock
        self.server: PostgresServer = locate(url, "store")
        self.url = url
        self.timeout = timeout
        self.patience = patience
        self.schema = schema
        self._connections = Connections(url)
        self._preparing = anyio.Lock()
        self._is_ready = False
        self._closed = False
        self._writes: set[asyncio.Task[Any]] = set()

    @property
    def closed(self) -> bool:
        """Whether the store is closed."""
        return self._closed

    async def ready(self) -> None:
        """Create the tables if there are none, and check their version.

        Raises:
            UsageError: the store is closed.
            StoreUnavailable: the server fails, or its tables are those of another release.
        """
        if self._closed:
            raise UsageError("This store is closed. Open a new one.")
        if self._is_ready:
            return
        async with self._preparing:
            if not self._is_ready:
                await self.attempt(self._prepare, MIGRATING)
                self._is_ready = True

    async def rows(self, statement: Query, *values: Any, **named: Any) -> Rows:
        """The rows of a statement, which is repeated if the connection is lost: it must do no harm
        twice. Without values, it may be several statements.

        Raises:
            UsageError: the store is closed.
            StoreUnavailable: the server fails or does not answer in time.
        """

        async def run() -> Rows:
            given = values or named or None
            return await self._connections.run(statement, given, self.timeout, self.timeout)

        await self.ready()
        return await self._repeat(run)

    async def prompt_rows(self, statement: Query, *values: Any) -> Rows:
        """The rows of a statement that does not wait for others, however many there are: what keeps
        claims and informs other processes.

        Raises:
            UsageError: the store is closed.
            StoreUnavailable: the server fails or does not answer in time.
        """

        async def run() -> Rows:
            return await self._connections.run(
                statement, values, self.timeout, self.timeout, prompt=True
            )

        await self.ready()
        return await self._repeat(run)

    async def write(self, statement: Query, *values: Any, repeats: bool = True) -> Rows:
        """The rows of a statement that changes something. It ends even if the caller is cancelled,
        so that the caller need not wonder whether it has half happened. If it `repeats`, it is
        made again when the connection is lost.

        Raises:
            UsageError: the store is closed.
            StoreUnavailable: the server fails or does not answer in time.
        """
        rows = self.rows if repeats else self._rows_once
        writing = asyncio.create_task(rows(statement, *values))
        self._writes.add(writing)
        writing.add_done_callback(self._written)
        return await asyncio.shield(writing)

    async def _rows_once(self, statement: Query, *values: Any) -> Rows:
        async def run() -> Rows:
            return await self._connections.run(statement, values, self.timeout, self.timeout)

        await self.ready()
        return await self._translated(run, self.timeout)

    def _written(self, writing: "asyncio.Task[Any]") -> None:
        self._writes.discard(writing)
        if not writing.cancelled():
            writing.exception()  # the caller may have been cancelled

    async def transact(
        self,
        work: Callable[[Session], Awaitable[T]],
        limit: float | None = None,
        *,
        repeats: bool = True,
    ) -> T:
        """The result of a function inside one transaction. If it `repeats`, it is called again
        when the connection is lost.

        Raises:
            UsageError: the store is closed.
            StoreUnavailable: the server fails or does not answer in time; nothing was changed.
        """

        async def act(session: Session) -> T:
            async with session.transaction():
                return await work(session)

        async def run() -> T:
            return await self._connections.use(act, self.timeout, limit or self.timeout)

        await self.ready()
        return await (self._repeat(run) if repeats else self._translated(run, self.timeout))

    async def attempt(
        self, work: Callable[[Session], Awaitable[T]], limit: float, *, prompt: bool = False
    ) -> T:
        """The result of a function that gets a connection, whatever the tables are; a `prompt` one
        does not wait for others.

        Raises:
            UsageError: the store is closed.
            StoreUnavailable: the server fails or does not answer in time.
        """
        if self._closed:
            raise UsageError("This store is closed. Open a new one.")

        async def run() -> T:
            return await self._connections.use(work, self.timeout, limit, prompt=prompt)

        return await self._translated(run, self.timeout)

    async def aclose(self) -> None:
        """Finish what is being written, close the connections and refuse all later calls."""
        if self._writes:
            await asyncio.wait({*self._writes})
        self._closed = True
        await self._connections.aclose()

    async def _repeat(self, run: Callable[[], Awaitable[T]]) -> T:
        """Run until it succeeds, the fault is one that does not pass, or patience ends."""
        pause, until = PAUSE, anyio.current_time() + self.patience
        while True:
            try:
                return await self._translated(run, self.timeout)
            except StoreUnavailable as error:
                is_over = self._closed or anyio.current_time() + pause > until
                if is_over or not is_passing(error.__cause__):
                    raise
            await anyio.sleep(pause)
            pause = min(2 * pause, 1.0)

    async def _translated(self, run: Callable[[], Awaitable[T]], limit: float) -> T:
        try:
            return await run()
        except TimeoutError as error:
            raise self.server.store_timed_out(limit) from error
        except psycopg.Error as error:
            raise self.server.store_unavailable(error) from error

    async def _prepare(self, session: Session) -> None:
        """Create the tables in an empty database.

        Raises:
            StoreUnavailable: they are those of another release, or cannot hold all text.
        """
        await self.check_encoding(session)
        version = await version_of(session, self.schema)
        if version == 0:
            async with session.transaction():  # others see all of them, or none
                while await take_step(session, self.schema):
                    pass
            version = await version_of(session, self.schema)
        if version != self.schema.version:
            raise self.mismatch(version)
        if self.clock is not None:
            await self.clock.measure(session)

    async def check_encoding(self, session: Session) -> None:
        """Refuse a database that cannot hold the names of all tenants, agents and persons.

        Raises:
            StoreUnavailable: its encoding is not UTF-8.
        """
        found = await (await session.execute("SHOW server_encoding")).fetchone()
        assert found is not None
        # In a database without an encoding, text is bytes.
        name = found[0].decode() if isinstance(found[0], bytes) else found[0]
        if name != "UTF8":
            raise StoreUnavailable(
                f"The database in {self.server} has the encoding {name}, which cannot hold all "
                "text. Create one for the store: `CREATE DATABASE loom ENCODING 'UTF8' TEMPLATE "
                "template0`."
            )

    def mismatch(self, version: int) -> StoreUnavailable:
        """The refusal of tables of another release."""
        known, part = self.schema.version, self.schema.part
        if version > known:
            remedy = "Install that release here, or choose another database for the store."
            return StoreUnavailable(
                f"The {part} tables in {self.server} belong to a later release of Turnloom (schema "
                f"{version}; this release uses {known}). {remedy}"
            )
        return StoreUnavailable(
            f"The {part} tables in {self.server} belong to an earlier release of Turnloom (schema "
            f"{version}; this release uses {known}). Stop the programs that use them, and run "
            "`turnloom store migrate`."
        )


def refusal(error: StoreUnavailable) -> tuple[str, str]:
    """The SQLSTATE and the message of the error that the server raised; empty if it was none."""
    cause = error.__cause__
    if isinstance(cause, psycopg.Error) and cause.sqlstate:
        return cause.sqlstate, cause.diag.message_primary or ""
    return "", ""


def database_at(place: Database | str, timeout: float) -> Database:
    """The tables of a store at a URL, or those that are given."""
    return place if isinstance(place, Database) else Database(place, timeout, schema_of("store"))
