"""What a SQLite file keeps beside runs: keys, the audit trail, feedback, schedules."""

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from json import dumps, loads
from typing import Any, TypeVar

from turnloom.access.spec import EVERY_ENTRY, ApiKey, AuditEntry, AuditFilter, StoredKey
from turnloom.adapters.sqlite import beside_queries as queries
from turnloom.adapters.sqlite.database import DatabaseFile
from turnloom.adapters.sqlite.writer import StoreWrite, Writer
from turnloom.board.logic.rows import instant_of, microseconds
from turnloom.errors import UnknownRun
from turnloom.feedback.logic import refuse_more
from turnloom.feedback.spec import Feedback, FeedbackFilter
from turnloom.log.spec import RunKey
from turnloom.schedules.spec import Firing, PlannedStart

T = TypeVar("T")

# Above every position.
_END = 2**62


class Change(StoreWrite[T]):
    """A change that one function makes."""

    __slots__ = ("_change",)

    def __init__(self, change: Callable[[Writer], T]) -> None:
        super().__init__()
        self._change = change

    def apply(self, writer: Writer) -> T:
        """Call the function."""
        return self._change(writer)


async def _count(database: DatabaseFile, query: str, *values: Any) -> int:
    """Execute a statement, and return how many rows it changed."""
    return await database.write(Change(lambda writer: writer.execute(query, values).rowcount))


async def _erase(
    database: DatabaseFile, rows_of: str, tenant: str, user: str, *, dry_run: bool
) -> int:
    """Remove the rows of a person, or count them."""
    if dry_run:
        await database.ready()
        return database.rows(f"SELECT count(*) {rows_of}", tenant, user)[0][0]
    return await _count(database, f"DELETE {rows_of}", tenant, user)


def _micros(at: datetime | None) -> int | None:
    return None if at is None else microseconds(at)


def _instant(micros: int | None) -> datetime | None:
    return None if micros is None else instant_of(micros)


class SqliteKeys:
    """API keys, for any number of processes."""

    def __init__(self, database: DatabaseFile) -> None:
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
        return await _count(self._database, queries.ADD_KEY, *values) == 1

    async def lookup(self, id: str) -> StoredKey | None:
        """The key of this id.

        Raises:
            StoreUnavailable: the file cannot be read.
        """
        await self._database.ready()
        for *row, digest in self._database.rows(queries.FIND_KEY, id):
            return StoredKey(_key(row), digest)
        return None

    async def any(self, now: datetime) -> bool:
        """Whether a tenant has a key that is in force.

        Raises:
            StoreUnavailable: the file cannot be read.
        """
        await self._database.ready()
        return bool(self._database.rows(queries.ANY_KEY, microseconds(now)))

    async def list(self, tenant: str, limit: int, *, before: str | None = None) -> Sequence[ApiKey]:
        """Keys of a tenant, latest first.

        Raises:
            StoreUnavailable: the file cannot be read.
        """
        await self._database.ready()
        values = {"tenant": tenant, "before": before, "limit": limit}
        return [_key(row) for row in self._database.named_rows(queries.KEYS_OF, values)]

    async def revoke(self, tenant: str, id: str, at: datetime) -> ApiKey | None:
        """Revoke a key of a tenant; the first revocation stands.

        Raises:
            StoreUnavailable: nothing was changed.
        """

        def revoke(writer: Writer) -> ApiKey | None:
            writer.execute(queries.REVOKE_KEY, (microseconds(at), tenant, id))
            found = writer.execute(queries.KEY_OF, (tenant, id)).fetchone()
            return None if found is None else _key(found)

        return await self._database.write(Change(revoke))

    async def touch(self, tenant: str, id: str, at: datetime) -> None:
        """Note a use of a key; an earlier one changes nothing."""
        await _count(self._database, queries.TOUCH_KEY, microseconds(at), tenant, id)

    async def erase(self, tenant: str, user: str, *, dry_run: bool = False) -> int:
        """Remove all keys of a person; returns how many there were.

        Raises:
            StoreUnavailable: nothing was removed.
        """
        return await _erase(self._database, queries.KEYS_OF_PERSON, tenant, user, dry_run=dry_run)


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


class SqliteAudit:
    """The audit trail, for any number of processes. Triggers refuse changes and removals."""

    def __init__(self, database: DatabaseFile) -> None:
        self._database = database

    async def append(self, tenant: str, entry: AuditEntry) -> int:
        """Add an entry; returns its position.

        Raises:
            StoreUnavailable: nothing was added.
        """
        values = {
            "tenant": tenant,
            "who": entry.who,
            "action": entry.action,
            "what": entry.what,
            "at": microseconds(entry.at),
            "outcome": entry.outcome,
            "via": entry.via,
        }

        def add(writer: Writer) -> int:
            return writer.execute(queries.ADD_ENTRY, values).fetchall()[0][0]

        return await self._database.write(Change(add))

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
            StoreUnavailable: the file cannot be read.
        """
        await self._database.ready()
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
            for who, action, what, at, outcome, via, position in self._database.named_rows(
                queries.ENTRIES_OF, values
            )
        ]


class SqliteFeedback:
    """Feedback on runs, for any number of processes. It is removed with its run."""

    def __init__(self, database: DatabaseFile) -> None:
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

        def give(writer: Writer) -> None:
            if writer.execute(queries.IS_RUN, run).fetchone() is None:
                raise UnknownRun(run.id)
            if writer.execute(queries.HAS_FEEDBACK, place).fetchone() is None:
                refuse_more(run.id, writer.execute(queries.COUNT_FEEDBACK, run).fetchone()[0])
            writer.execute(queries.DROP_FEEDBACK, place)
            writer.execute(queries.ADD_FEEDBACK, (*place, *values))

        await self._database.write(Change(give))

    async def of_run(self, run: RunKey) -> Sequence[Feedback]:
        """The feedback on a run, oldest first.

        Raises:
            StoreUnavailable: the file cannot be read.
        """
        await self._database.ready()
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
            for turn, name, score, label, comment, who, at in self._database.rows(
                queries.FEEDBACK_OF, *run
            )
        ]

    async def chosen(
        self, tenant: str, runs: Collection[str], which: FeedbackFilter
    ) -> frozenset[str]:
        """Those of some runs with feedback that a filter selects.

        Raises:
            StoreUnavailable: the file cannot be read.
        """
        await self._database.ready()
        values = {"tenant": tenant, "runs": dumps([*runs]), **which._asdict()}
        return frozenset(run for (run,) in self._database.named_rows(queries.CHOSEN_RUNS, values))

    async def erase(self, tenant: str, user: str, *, dry_run: bool = False) -> int:
        """Remove all feedback of a person; returns how much there was.

        Raises:
            StoreUnavailable: nothing was removed.
        """
        return await _erase(
            self._database, queries.FEEDBACK_OF_PERSON, tenant, user, dry_run=dry_run
        )


class SqliteSchedules:
    """Firings of schedules, and planned starts, for any number of processes."""

    def __init__(self, database: DatabaseFile) -> None:
        self._database = database

    async def firings(self, tenant: str) -> Mapping[str, Firing]:
        """The last firings of a tenant's schedules, by name.

        Raises:
            StoreUnavailable: the file cannot be read.
        """
        await self._database.ready()
        rows = self._database.rows(queries.FIRINGS_OF, tenant)
        return {name: Firing(instant_of(at), run, error) for name, at, run, error in rows}

    async def begin(self, tenant: str, schedule: str, at: datetime) -> Firing:
        """The last firing of a schedule; the first call sets where it counts from.

        Raises:
            StoreUnavailable: nothing was stored.
        """
        await self._database.ready()
        place = (tenant, schedule)
        if not self._database.rows(queries.LAST_FIRING, *place):
            await _count(self._database, queries.BEGIN_FIRINGS, *place, microseconds(at))
        ((found, run, error),) = self._database.rows(queries.LAST_FIRING, *place)
        return Firing(instant_of(found), run, error)

    async def record(self, tenant: str, schedule: str, firing: Firing) -> None:
        """Store the last firing of a schedule, unless a later one is stored.

        Raises:
            StoreUnavailable: nothing was stored.
        """
        values = (tenant, schedule, microseconds(firing.at), firing.run, firing.error)
        await _count(self._database, queries.RECORD_FIRING, *values)

    async def plan(self, tenant: str, start: PlannedStart) -> bool:
        """Store a planned start; returns False if there is one of this run.

        Raises:
            StoreUnavailable: nothing was stored.
        """
        values = (
            *(tenant, start.run, microseconds(start.at), start.workflow, start.user),
            *(start.state, start.entry, start.error),
        )
        return await _count(self._database, queries.PLAN_START, *values) == 1

    async def planned(self, tenant: str, limit: int) -> Sequence[PlannedStart]:
        """Planned starts of a tenant, the next one first.

        Raises:
            StoreUnavailable: the file cannot be read.
        """
        await self._database.ready()
        return [_start(row) for row in self._database.rows(queries.STARTS_OF, tenant, limit)]

    async def due(self, now: datetime, limit: int) -> Sequence[PlannedStart]:
        """Planned starts of all tenants that are due, oldest first.

        Raises:
            StoreUnavailable: the file cannot be read.
        """
        await self._database.ready()
        rows = self._database.rows(queries.DUE_STARTS, microseconds(now), limit)
        return [_start(row) for row in rows]

    async def upcoming(self) -> datetime | None:
        """The instant of the next planned start.

        Raises:
            StoreUnavailable: the file cannot be read.
        """
        await self._database.ready()
        return _instant(self._database.rows(queries.NEXT_START)[0][0])

    async def settle(self, run: RunKey, error: str = "") -> bool:
        """Remove a planned start, or keep it as failed.

        Raises:
            StoreUnavailable: nothing was changed.
        """
        if error:
            return await _count(self._database, queries.FAIL_START, error, *run) == 1
        return await _count(self._database, queries.DROP_START, *run) == 1

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
