"""What a PostgreSQL store keeps beside runs: keys, the audit trail, feedback, schedules."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from json import dumps, loads
from typing import Any, LiteralString

from psycopg.abc import QueryNoTemplate

from turnloom.access.spec import EVERY_ENTRY, ApiKey, AuditEntry, AuditFilter, StoredKey
from turnloom.adapters.postgres import beside_queries as queries
from turnloom.adapters.postgres.connections import Session
from turnloom.adapters.postgres.database import Database
from turnloom.board.logic.rows import instant_of, microseconds
from turnloom.errors import UnknownRun
from turnloom.feedback.logic import refuse_more
from turnloom.feedback.spec import Feedback, FeedbackFilter
from turnloom.log.spec import RunKey
from turnloom.schedules.spec import Firing, PlannedStart

# Above every position.
_END = 2**62


def _micros(at: datetime | None) -> int | None:
    return None if at is None else microseconds(at)


def _instant(micros: int | None) -> datetime | None:
    return None if micros is None else instant_of(micros)


class PostgresKeys:
    """API keys, for any number of machines."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, key: StoredKey) -> bool:
        """Store a key; returns False if its id is taken.

        Raises:
            StoreUnavailable: nothing was stored.
        """
        it = key.key
        values = (
            *(it.id, it.tenant, it.user, it.role, dumps(it.scopes), it.name),
            *(microseconds(it.created), it.created_by, _micros(it.expires)),
            *(_micros(it.revoked), _micros(it.last_used), key.digest),
        )
        return bool(await self._database.write(queries.ADD_KEY, *values))

    async def lookup(self, id: str) -> StoredKey | None:
        """The key of this id.

        Raises:
            StoreUnavailable: the server fails or does not answer in time.
        """
        for *row, digest in await self._database.rows(queries.FIND_KEY, id):
            return StoredKey(_key(row), digest)
        return None

    async def any(self, now: datetime) -> bool:
        """Whether a tenant has a key that is in force.

        Raises:
            StoreUnavailable: the server fails or does not answer in time.
        """
        return bool(await self._database.rows(queries.ANY_KEY, microseconds(now)))

    async def list(self, tenant: str, limit: int, *, before: str | None = None) -> Sequence[ApiKey]:
        """Keys of a tenant, latest first.

        Raises:
            StoreUnavailable: the server fails or does not answer in time.
        """
        values = {"tenant": tenant, "before": before, "limit": limit}
        return [_key(row) for row in await self._database.rows(queries.KEYS_OF, **values)]

    async def revoke(self, tenant: str, id: str, at: datetime) -> ApiKey | None:
        """Revoke a key of a tenant; the first revocation stands.

        Raises:
            StoreUnavailable: nothing was changed.
        """
        values = (microseconds(at), tenant, id)
        for row in await self._database.write(queries.REVOKE_KEY, *values):
            return _key(row)
        return None

    async def touch(self, tenant: str, id: str, at: datetime) -> None:
        """Note a use of a key; an earlier one changes nothing."""
        await self._database.write(queries.TOUCH_KEY, microseconds(at), tenant, id)

    async def erase(self, tenant: str, user: str, *, dry_run: bool = False) -> int:
        """Remove all keys of a person; returns how many there were.

        Raises:
            StoreUnavailable: nothing was removed.
        """
        return await _erase(self._database, queries.KEYS_OF_PERSON, tenant, user, dry_run=dry_run)


async def _fetch(
    session: Session, query: QueryNoTemplate, values: tuple[Any, ...]
) -> Sequence[Any]:
    return await (await session.execute(query, values)).fetchall()


async def _erase(
    database: Database, rows_of: LiteralString, tenant: str, user: str, *, dry_run: bool
) -> int:
    """Remove the rows of a person, or count them."""
    if dry_run:
        ((count,),) = await database.rows(f"SELECT count(*) {rows_of}", tenant, user)
        return count
    return len(await database.write(f"DELETE {rows_of} RETURNING 1", tenant, user))


def _key(row: Sequence[Any]) -> ApiKey:
    id, tenant, user, role, scopes, name, created, created_by, *times = row
    expires, revoked, last_used = map(_instant, times)
    return ApiKey(
        id,
        tenant,
        user,
        role,
        scopes=tuple(loads(scopes)),
        name=name,
        created=instant_of(created),
        created_by=created_by,
        expires=expires,
        revoked=revoked,
        last_used=last_used,
    )


class PostgresAudit:
    """The audit trail, for any number of machines. A trigger refuses changes and removals."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def append(self, tenant: str, entry: AuditEntry) -> int:
        """Add an entry; returns its position.

        Raises:
            StoreUnavailable: nothing was added.
        """
        ((number,),) = await self._database.rows(queries.NEXT_ENTRY)
        ((position,),) = await self._database.write(
            queries.ADD_ENTRY,
            *(tenant, number, entry.who, entry.action, entry.what),
            *(microseconds(entry.at), entry.outcome, entry.via),
        )
        return position

    async def entries(
        self,
        tenant: str,
        limit: int,
        *,
        before: int | None = None,
        which: AuditFilter = EVERY_ENTRY,
    ) -> Sequence[AuditEntry]:
        """Entries of a tenant that a filter selects, latest first.

        Raises:
            StoreUnavailable: the server fails or does not answer in time.
        """
        values = {
            "tenant": tenant,
            "limit": limit,
            "before": _END if before is None else before,
            "who": which.who,
            "action": which.action,
            "since": _micros(which.since),
            "until": _micros(which.until),
        }
        return [
            AuditEntry(
                tenant,
                who,
                action,
                what,
                at=instant_of(at),
                outcome=outcome,
                via=via,
                position=position,
            )
            for who, action, what, at, outcome, via, position in await self._database.rows(
                queries.ENTRIES_OF, **values
            )
        ]


class PostgresFeedback:
    """Feedback on runs, for any number of machines. It is removed with its run."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def give(self, run: RunKey, feedback: Feedback) -> None:
        """Store feedback on a run, replacing the earlier one of its author, name and turn.

        Raises:
            UnknownRun: the run does not exist.
            UsageError: the run has too much feedback.
            StoreUnavailable: nothing was stored.
        """
        place = (*run, feedback.turn or 0, feedback.name, feedback.who)
        values = (feedback.score, feedback.label, feedback.comment, microseconds(feedback.at))

        async def give(session: Session) -> None:
            if not await _fetch(session, queries.HOLD_RUN, run):
                raise UnknownRun(run.id)
            if not await _fetch(session, queries.HAS_FEEDBACK, place):
                ((count,),) = await _fetch(session, queries.COUNT_FEEDBACK, run)
                refuse_more(run.id, count)
            await session.execute(queries.DROP_FEEDBACK, place)
            await session.execute(queries.ADD_FEEDBACK, (*place, *values))

        await self._database.transact(give)

    async def of_run(self, run: RunKey) -> Sequence[Feedback]:
        """The feedback on a run, oldest first.

        Raises:
            StoreUnavailable: the server fails or does not answer in time.
        """
        return [
            Feedback(
                run.id,
                turn or None,
                name,
                score,
                label=label,
                comment=comment,
                who=who,
                at=instant_of(at),
            )
            for turn, name, score, label, comment, who, at in await self._database.rows(
                queries.FEEDBACK_OF, *run
            )
        ]

    async def chosen(
        self, tenant: str, runs: Collection[str], which: FeedbackFilter
    ) -> frozenset[str]:
        """Those of some runs with feedback that a filter selects.

        Raises:
            StoreUnavailable: the server fails or does not answer in time.
        """
        values = {"tenant": tenant, "runs": [*runs], **which._asdict()}
        found = await self._database.rows(queries.CHOSEN_RUNS, **values)
        return frozenset(run for (run,) in found)

    async def erase(self, tenant: str, user: str, *, dry_run: bool = False) -> int:
        """Remove all feedback of a person; returns how much there was.

        Raises:
            StoreUnavailable: nothing was removed.
        """
        return await _erase(
            self._database, queries.FEEDBACK_OF_PERSON, tenant, user, dry_run=dry_run
        )


class PostgresSchedules:
    """Firings of schedules, and planned starts, for any number of machines."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def firings(self, tenant: str) -> Mapping[str, Firing]:
        """The last firings of a tenant's schedules, by name.

        Raises:
            StoreUnavailable: the server fails or does not answer in time.
        """
        rows = await self._database.rows(queries.FIRINGS_OF, tenant)
        return {name: Firing(instant_of(at), run, error) for name, at, run, error in rows}

    async def begin(self, tenant: str, schedule: str, at: datetime) -> Firing:
        """The last firing of a schedule; the first call sets where it counts from.

        Raises:
            StoreUnavailable: nothing was stored.
        """
        place = (tenant, schedule)
        found = await self._database.rows(queries.LAST_FIRING, *place)
        if not found:
            await self._database.write(queries.BEGIN_FIRINGS, *place, microseconds(at))
            found = await self._database.rows(queries.LAST_FIRING, *place)
        ((last, run, error),) = found
        return Firing(instant_of(last), run, error)

    async def record(self, tenant: str, schedule: str, firing: Firing) -> None:
        """Store the last firing of a schedule, unless a later one is stored.

        Raises:
            StoreUnavailable: nothing was stored.
        """
        values = (tenant, schedule, microseconds(firing.at), firing.run, firing.error)
        await self._database.write(queries.RECORD_FIRING, *values)

    async def plan(self, tenant: str, start: PlannedStart) -> bool:
        """Store a planned start; returns False if there is one of this run.

        Raises:
            StoreUnavailable: nothing was stored.
        """
        values = (
            *(tenant, start.run, microseconds(start.at), start.workflow, start.user),
            *(start.state, start.entry, start.error),
        )
        return bool(await self._database.write(queries.PLAN_START, *values))

    async def planned(self, tenant: str, limit: int) -> Sequence[PlannedStart]:
        """Planned starts of a tenant, the next one first.

        Raises:
            StoreUnavailable: the server fails or does not answer in time.
        """
        return [_start(row) for row in await self._database.rows(queries.STARTS_OF, tenant, limit)]

    async def due(self, now: datetime, limit: int) -> Sequence[PlannedStart]:
        """Planned starts of all tenants that are due, oldest first.

        Raises:
            StoreUnavailable: the server fails or does not answer in time.
        """
        rows = await self._database.rows(queries.DUE_STARTS, microseconds(now), limit)
        return [_start(row) for row in rows]

    async def upcoming(self) -> datetime | None:
        """The instant of the next planned start.

        Raises:
            StoreUnavailable: the server fails or does not answer in time.
        """
        ((at,),) = await self._database.rows(queries.NEXT_START)
        return _instant(at)

    async def settle(self, run: RunKey, error: str = "") -> bool:
        """Remove a planned start, or keep it as failed.

        Raises:
            StoreUnavailable: nothing was changed.
        """
        if error:
            return bool(await self._database.write(queries.FAIL_START, error, *run))
        return bool(await self._database.write(queries.DROP_START, *run))

    async def erase(self, tenant: str, user: str, *, dry_run: bool = False) -> int:
        """Remove all planned starts of a person; returns how many there were.

        Raises:
            StoreUnavailable: nothing was removed.
        """
        return await _erase(self._database, queries.STARTS_OF_PERSON, tenant, user, dry_run=dry_run)


def _start(row: Sequence[Any]) -> PlannedStart:
    tenant, run, at, workflow, user, state, entry, error = row
    return PlannedStart(
        tenant, run, instant_of(at), workflow, user=user, state=state, entry=entry, error=error
    )
