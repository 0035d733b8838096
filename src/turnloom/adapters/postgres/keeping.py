"""How a PostgreSQL store is kept: its schema, the record of removals, its tenants, copies of
runs."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from functools import partial
from typing import Any

import anyio.to_thread

from turnloom.adapters.postgres import store_queries as queries
from turnloom.adapters.postgres.connections import Session
from turnloom.adapters.postgres.database import MIGRATING, Database
from turnloom.adapters.postgres.log import PostgresLog, not_branched, refused_batch
from turnloom.adapters.postgres.schema import take_step, version_of
from turnloom.board.logic.rows import instant_of, microseconds
from turnloom.errors import Conflict, LogDamaged, StoreUnavailable
from turnloom.log.logic import Codec
from turnloom.log.spec import Event, RunKey
from turnloom.runtime.spec import Migration, Removal, RunCopy

# Before the names of what is no run, in the record of removals.
OTHERS = "other:"

# Seconds that reading or writing a whole run may take, and appends that are sent at once.
COPYING, AT_ONCE = 600.0, 100


class PostgresMigrator:
    """Updates the tables of a database; they may be those of an earlier release."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def pending(self) -> Sequence[Migration]:
        """The steps that are missing, in order; all of a database without our tables.

        Raises:
            StoreUnavailable: the tables belong to a later release, or the server fails.
        """
        return await self._database.attempt(self._missing, self._database.timeout)

    async def _missing(self, session: Session) -> list[Migration]:
        schema = self._database.schema
        await self._database.check_encoding(session)
        version = await version_of(session, schema)
        if version > schema.version:
            raise self._database.mismatch(version)
        return schema.migrations[version:]

    async def migrate(self) -> AsyncGenerator[Migration, None]:
        """Take the missing steps, each in a transaction, and give each when it is taken.

        Raises:
            StoreUnavailable: the tables belong to a later release, or the server fails; the steps
                that were given stay.
        """
        take = partial(take_step, schema=self._database.schema)
        while await self.pending():
            if (taken := await self._database.attempt(take, MIGRATING)) is not None:
                yield taken


async def add_removal(
    session: Session, tenant: str, removal: Removal, counts: Mapping[str, int]
) -> None:
    """Add counts to the record of a removal, inside a transaction."""
    place = (tenant, microseconds(removal.at), removal.by, removal.what)
    rows = [(*place, kind, count) for kind, count in sorted(counts.items())]
    async with session.cursor() as cursor:
        await cursor.executemany(queries.ADD_REMOVAL, rows)


class PostgresRemovals:
    """The record of removals, for any number of machines."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, tenant: str, removal: Removal) -> None:
        """Add counts to the record of the same instant, person and purpose, or begin it.

        Raises:
            StoreUnavailable: nothing was added, unless the connection was lost in the meantime.
        """
        counts = {"runs": removal.runs, "events": removal.events, "artifacts": removal.artifacts}
        others = {f"{OTHERS}{kind}": count for kind, count in removal.others.items()}
        add = partial(add_removal, tenant=tenant, removal=removal, counts=counts | others)
        await self._database.transact(add, repeats=False)  # it would count twice

    async def recent(self, tenant: str, limit: int) -> Sequence[Removal]:
        """The latest records of a tenant.

        Raises:
            StoreUnavailable: the server fails or does not answer in time.
        """
        rows = await self._database.rows(queries.REMOVALS_OF, tenant, tenant, limit)
        found: dict[tuple[int, str, str], dict[str, int]] = {}
        for at, by, what, kind, count in rows:
            found.setdefault((at, by, what), {})[kind] = count
        return [_removal(*place, counts) for place, counts in found.items()]

    async def remember(self, run: RunKey) -> None:
        """Keep the id of a run that is about to be removed, so that it is not used again.

        Raises:
            StoreUnavailable: nothing was kept.
        """
        await self._database.write(queries.REMEMBER_RUN, *run)

    async def is_removed(self, run: RunKey) -> bool:
        """Whether the id of a run is kept in this way.

        Raises:
            StoreUnavailable: the server fails or does not answer in time.
        """
        return bool(await self._database.rows(queries.IS_REMOVED, *run))


def _removal(at: int, by: str, what: str, counts: Mapping[str, int]) -> Removal:
    others = {kind.removeprefix(OTHERS): n for kind, n in counts.items() if kind.startswith(OTHERS)}
    named = {kind: n for kind, n in counts.items() if not kind.startswith(OTHERS)}
    return Removal(instant_of(at), by, what, others=others, **named)


class PostgresTenants:
    """The tenants of a store."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def names(self) -> Sequence[str]:
        """The tenants that have runs, sorted.

        Raises:
            StoreUnavailable: the server fails or does not answer in time.
        """
        return [tenant for (tenant,) in await self._database.rows(queries.TENANTS)]


class PostgresCopies:
    """Whole runs of a store, each read and written in one transaction."""

    def __init__(self, database: Database, log: PostgresLog, codec: Codec) -> None:
        self._database = database
        self._log = log
        self._codec = codec

    async def read(self, run: RunKey) -> RunCopy | None:
        """The events that a run recorded, as of one instant; None for an unknown run.

        Raises:
            UnknownKind: one of them cannot be read.
            LogDamaged: some of them are missing.
            StoreUnavailable: the server fails or does not answer in time.
        """
        found = await self._database.transact(partial(_read, run=run), COPYING)
        if found is None:
            return None
        return await anyio.to_thread.run_sync(_decoded, *found, run, self._codec)

    async def write(self, run: RunKey, copy: RunCopy) -> None:
        """Append all batches of a copy in one transaction.

        Raises:
            Conflict: the run is at another position, or one of the ids is taken.
            UnknownRun: the origin is not there.
            UsageError: the origin cannot be cut there.
            StoreUnavailable: nothing was stored.
        """
        write = partial(_write, run=run, copy=copy, log=self._log)
        try:
            await self._database.transact(write, COPYING)
        except StoreUnavailable as error:
            raise refused_batch(run, copy.batches[0], error) or error from error.__cause__
        except Conflict:
            stored = await self.read(run)  # the connection may have been lost after the commit
            if stored is None or stored.batches[-len(copy.batches) :] != copy.batches:
                raise


async def _read(session: Session, run: RunKey) -> tuple[str, int, list[Any]] | None:
    """The origin of a run, the position of its first own event, and its batches."""
    await session.execute(queries.SNAPSHOT)
    found = await (await session.execute(queries.NUMBER_OF, run)).fetchone()
    if found is None:
        return None
    origin = await (await session.execute(queries.ORIGIN_OF, found)).fetchone()
    upto, name = origin or (0, "")
    batches = await (await session.execute(queries.OWN_BATCHES, found, binary=True)).fetchall()
    return name, upto + 1, batches


def _decoded(origin: str, wanted: int, rows: Sequence[Any], run: RunKey, codec: Codec) -> RunCopy:
    batches: list[tuple[Event, ...]] = []
    for first, last, data in rows:
        lines = data.split(b"\n")
        if first != wanted or len(lines) != last + 1 - first:
            raise LogDamaged(run.id, wanted, max(wanted, first - 1))
        decoded = (codec.decode(line, run.id, seq) for seq, line in enumerate(lines, first))
        batches.append(tuple(decoded))
        wanted = last + 1
    if not batches:
        raise LogDamaged(run.id, wanted)
    return RunCopy(tuple(batches), origin)


async def _write(session: Session, run: RunKey, copy: RunCopy, log: PostgresLog) -> None:
    first, *rest = copy.batches
    if copy.origin:
        call = log.branch_call(run, copy.origin, copy.after, first)
        found = await (await session.execute(*call)).fetchone()
        outcome, reached = found or ("", None)
        if outcome == "elsewhere":
            raise _elsewhere(run)
        if outcome != "stored":
            origin = RunKey(run.tenant, copy.origin)
            raise not_branched(outcome, run, origin, at=copy.after, reached=reached or 0)
    else:
        rest = [first, *rest]
    for start in range(0, len(rest), AT_ONCE):
        part = rest[start : start + AT_ONCE]
        values = [log.append_call(run, batch, batch[0].seq - 1)[1] for batch in part]
        async with session.cursor() as cursor:
            await cursor.executemany(queries.APPEND, values, returning=True)
            async for _ in cursor.results():
                found = await cursor.fetchone()
                if found is None or found[0] != "stored":
                    raise _elsewhere(run)


def _elsewhere(run: RunKey) -> Conflict:
    return Conflict(f"Run {run.id!r} is there, and at another position than its copy.")
