"""How a SQLite file is kept: its schema, the record of removals, its tenants, copies of runs."""

import sqlite3
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TypeVar

import anyio.to_thread

from turnloom.adapters.sqlite import queries
from turnloom.adapters.sqlite.batches import SEQ_MASK
from turnloom.adapters.sqlite.branches import segments_of
from turnloom.adapters.sqlite.connections import (
    connect_writer,
    create,
    migrations,
    missing_steps,
    prepare_empty,
    take_step,
)
from turnloom.adapters.sqlite.database import PAUSE, DatabaseFile
from turnloom.adapters.sqlite.faults import is_busy, unavailable
from turnloom.adapters.sqlite.log import SqliteLog
from turnloom.adapters.sqlite.readers import Readers, reading
from turnloom.adapters.sqlite.writer import StoreWrite, Writer
from turnloom.board.logic.rows import instant_of, microseconds
from turnloom.errors import LogDamaged
from turnloom.log.logic import Codec
from turnloom.log.spec import Event, RunKey
from turnloom.runtime.spec import Migration, Removal, RunCopy

T = TypeVar("T")


class SqliteMigrator:
    """Updates the schema of a file; it may be that of an earlier release."""

    def __init__(self, path: Path, patience: float) -> None:
        self._path = path
        self._patience = patience

    async def pending(self) -> Sequence[Migration]:
        """The steps that are missing, in order; all of a file that is missing or empty.

        Raises:
            StoreUnavailable: the file is not a store, or is from a later or too early release.
        """
        if not self._path.exists():
            return [*migrations()]
        return await self._with_file(missing_steps)

    async def migrate(self) -> AsyncGenerator[Migration, None]:
        """Take the missing steps, each in a transaction, and give each when it is taken.

        Raises:
            StoreUnavailable: the file is not a store, or is from a later or too early release, or
                cannot be written; the steps that were given stay.
        """
        create(self._path)
        while (taken := await self._with_file(_take_step)) is not None:
            yield taken

    async def _with_file(self, work: Callable[[sqlite3.Connection, Path], T]) -> T:
        """Work with the file in a thread, and retry for a while: the switch to WAL mode does not
        wait for locks."""
        for _ in range(int(self._patience / PAUSE)):
            try:
                return await anyio.to_thread.run_sync(self._connected, work)
            except sqlite3.Error as error:
                if not is_busy(error):
                    raise unavailable(error, self._path) from error
            await anyio.sleep(PAUSE)
        try:
            return await anyio.to_thread.run_sync(self._connected, work)
        except sqlite3.Error as error:
            raise unavailable(error, self._path) from error

    def _connected(self, work: Callable[[sqlite3.Connection, Path], T]) -> T:
        with closing(connect_writer(self._path, PAUSE)) as connection:
            return work(connection, self._path)


def _take_step(connection: sqlite3.Connection, path: Path) -> Migration | None:
    if missing_steps(connection, path) == [*migrations()]:
        prepare_empty(connection)
    return take_step(connection, path)


def add_removal(writer: Writer, tenant: str, removal: Removal, counts: Mapping[str, int]) -> None:
    """Add counts to the record of a removal, inside another write."""
    place = (tenant, microseconds(removal.at), removal.by, removal.what)
    rows = [(*place, kind, count) for kind, count in counts.items()]
    writer.connection.executemany(queries.ADD_REMOVAL, rows)


class _AddRemoval(StoreWrite[None]):
    __slots__ = ("_removal", "_tenant")

    def __init__(self, tenant: str, removal: Removal) -> None:
        super().__init__()
        self._tenant = tenant
        self._removal = removal

    def apply(self, writer: Writer) -> None:
        it = self._removal
        counts = {"runs": it.runs, "events": it.events, "artifacts": it.artifacts}
        others = {f"{OTHERS}{kind}": count for kind, count in it.others.items()}
        add_removal(writer, self._tenant, it, counts | others)


# Before the names of what is no run.
OTHERS = "other:"


class _Remember(StoreWrite[None]):
    __slots__ = ("_run",)

    def __init__(self, run: RunKey) -> None:
        super().__init__()
        self._run = run

    def apply(self, writer: Writer) -> None:
        writer.execute(queries.REMEMBER_RUN, self._run)


class SqliteRemovals:
    """The record of removals, for any number of processes."""

    def __init__(self, database: DatabaseFile) -> None:
        self._database = database

    async def add(self, tenant: str, removal: Removal) -> None:
        """Add counts to the record of the same instant, person and purpose, or begin it.

        Raises:
            StoreUnavailable: nothing was added.
        """
        await self._database.write(_AddRemoval(tenant, removal))

    async def recent(self, tenant: str, limit: int) -> Sequence[Removal]:
        """The latest records of a tenant.

        Raises:
            StoreUnavailable: the file cannot be read.
        """
        await self._database.ready()
        rows = self._database.rows(queries.REMOVALS_OF, tenant, limit)
        found: dict[tuple[int, str, str], dict[str, int]] = {}
        for at, by, what, kind, count in rows:
            found.setdefault((at, by, what), {})[kind] = count
        return [_removal(*place, counts) for place, counts in found.items()]

    async def remember(self, run: RunKey) -> None:
        """Keep the id of a run that is about to be removed, so that it is not used again.

        Raises:
            StoreUnavailable: nothing was kept.
        """
        await self._database.write(_Remember(run))

    async def is_removed(self, run: RunKey) -> bool:
        """Whether the id of a run is kept in this way.

        Raises:
            StoreUnavailable: the file cannot be read.
        """
        await self._database.ready()
        return bool(self._database.rows(queries.IS_REMOVED, *run))


def _removal(at: int, by: str, what: str, counts: Mapping[str, int]) -> Removal:
    others = {kind.removeprefix(OTHERS): n for kind, n in counts.items() if kind.startswith(OTHERS)}
    named = {kind: n for kind, n in counts.items() if not kind.startswith(OTHERS)}
    return Removal(instant_of(at), by, what, others=others, **named)


class SqliteTenants:
    """The tenants of a file."""

    def __init__(self, database: DatabaseFile) -> None:
        self._database = database

    async def names(self) -> Sequence[str]:
        """The tenants that have runs, sorted.

        Raises:
            StoreUnavailable: the file cannot be read.
        """
        await self._database.ready()
        return [tenant for (tenant,) in self._database.rows(queries.TENANTS)]


class _WriteCopy(StoreWrite[None]):
    """Appends several batches to a run, all or none."""

    __slots__ = ("_appends", "_run")

    def __init__(self, run: RunKey, appends: Sequence[StoreWrite[Sequence[Event]]]) -> None:
        super().__init__(run)
        self._run = run
        self._appends = appends

    def apply(self, writer: Writer) -> None:
        writer.execute(queries.SAVEPOINT_COPY)
        try:
            for append in self._appends:
                append.apply(writer)
        except Exception:
            writer.execute(queries.ROLLBACK_COPY)
            writer.run_ends.forget(self._run)
            raise
        finally:
            writer.execute(queries.RELEASE_COPY)


class SqliteCopies:
    """Whole runs of a file, each read and written in one transaction."""

    def __init__(
        self, database: DatabaseFile, readers: Readers, log: SqliteLog, codec: Codec
    ) -> None:
        self._database = database
        self._readers = readers
        self._log = log
        self._codec = codec

    async def read(self, run: RunKey) -> RunCopy | None:
        """The events that a run recorded, as of one instant; None for an unknown run.

        Raises:
            UnknownKind: one of them cannot be read.
            LogDamaged: some of them are missing.
            StoreUnavailable: the file cannot be read.
        """
        await self._database.ready()
        return await self._readers.run(partial(_read_copy, run=run, codec=self._codec))

    async def write(self, run: RunKey, copy: RunCopy) -> None:
        """Append all batches of a copy in one transaction.

        Raises:
            Conflict: the run is at another position, or one of the ids is taken.
            UnknownRun: the origin is not there.
            UsageError: the origin cannot be cut there.
            StoreUnavailable: nothing was stored.
        """
        first, *rest = copy.batches
        log, appends = self._log, list[StoreWrite[Sequence[Event]]]()
        if copy.origin:
            appends.append(log.branch_of(run, copy.origin, copy.after, first))
        else:
            rest = [first, *rest]
        appends += [log.append_of(run, batch, batch[0].seq - 1) for batch in rest]
        await self._database.write(_WriteCopy(run, appends))


def _read_copy(reader: sqlite3.Connection, run: RunKey, codec: Codec) -> RunCopy | None:
    with reading(reader):
        found = reader.execute(queries.NUMBER_OF, run).fetchone()
        if found is None:
            return None
        segments = segments_of(reader, found[0])
        origin, wanted = "", 1
        if segments:
            wanted = segments[-1].upto + 1
            (origin,) = reader.execute(queries.NAME_OF, (segments[-1].source,)).fetchone()
        rows = reader.execute(queries.BATCHES_OF, (found[0], 0, SEQ_MASK)).fetchall()
    batches: list[tuple[Event, ...]] = []
    for first, last, data, _ in rows:
        lines = data.split(b"\n")
        if first != wanted or len(lines) != last + 1 - first:
            raise LogDamaged(run.id, wanted, max(wanted, first - 1))
        decoded = (codec.decode(line, run.id, seq) for seq, line in enumerate(lines, first))
        batches.append(tuple(decoded))
        wanted = last + 1
    if not batches:
        raise LogDamaged(run.id, wanted)
    return RunCopy(tuple(batches), origin)
