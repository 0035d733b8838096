"""The event log in PostgreSQL."""

from collections.abc import AsyncGenerator, Sequence
from datetime import datetime
from hashlib import blake2b
from itertools import islice
from typing import Any, NamedTuple

import anyio
import anyio.to_thread
from psycopg.abc import QueryNoTemplate as Query
from psycopg.types.json import Json as JsonValue

from turnloom.adapters.postgres import store_queries as queries
from turnloom.adapters.postgres.board_rows import (
    added_artifacts,
    added_consumptions,
    added_outcomes,
)
from turnloom.adapters.postgres.database import Database, refusal
from turnloom.adapters.postgres.signals import COMMITS, PostgresSignals
from turnloom.agents.events import AnswerRefused, QuestionAnswered
from turnloom.board.events import ArtifactPublished, ArtifactRefused
from turnloom.board.logic.rows import EPOCH, TICK, microseconds, project, rows_of
from turnloom.errors import (
    ArtifactExists,
    Conflict,
    LeaseLost,
    LogDamaged,
    StoreUnavailable,
    UnknownRun,
)
from turnloom.guards.logic.selection import observations
from turnloom.log.events import ENDS, CancelRequested, RunResumed, RunStarted
from turnloom.log.logic import (
    BROKEN,
    STATUSES,
    Codec,
    check_batch,
    check_branch,
    check_cut,
    is_chosen,
    listed_first,
    no_position,
    run_exists,
    status_of,
)
from turnloom.log.spec import EVERY_RUN, Event, RunFilter, RunKey
from turnloom.reaction.events import ArtifactReceived, BatchClosed, RetryAsked

# The maximum number of batches per query, and of runs.
PAGE_BATCHES = 200
PAGE_RUNS = 100
# The number of events above which they are decoded in a thread.
AT_ONCE = 200

# Greater than the number of any run.
END = 2**62

# The kinds of events that record messages.
MAIL_KINDS = frozenset(
    fact.kind
    for fact in (
        QuestionAnswered,
        AnswerRefused,
        CancelRequested,
        RunResumed,
        ArtifactPublished,
        ArtifactRefused,
        ArtifactReceived,
        BatchClosed,
        RetryAsked,
    )
)

# Statuses of runs that have not ended.
_UNFINISHED = frozenset(STATUSES) - {BROKEN} - {kind.removeprefix("run.") for kind in ENDS}


def key_of(id: str) -> bytes:
    """An id as the key under which it is found."""
    return blake2b(id.encode("utf-8", "surrogatepass"), digest_size=16).digest()


# A statement and its values.
Call = tuple[Query, Sequence[Any]]


class _Batch(NamedTuple):
    """The events of an append as the functions of the schema take them."""

    keys: list[bytes]
    data: bytes
    status: str
    ended: int | None
    mail: list[bytes] | None
    side: JsonValue | None


class PostgresLog:
    """An event log in PostgreSQL, for any number of machines.

    Outcomes in events, and with `board` also artifacts, are stored in the same transaction.
    """

    def __init__(
        self, database: Database, signals: PostgresSignals, codec: Codec, *, board: bool = True
    ) -> None:
        self._database = database
        self._signals = signals
        self._codec = codec
        self._board = board

    # ------------------------------------------------------------------ writing

    async def append(
        self, run: RunKey, events: Sequence[Event], expected: int, fence: int | None = None
    ) -> Sequence[Event]:
        """Append events after position `expected`, all or none, and return the stored events.

        Raises:
            LeaseLost: the claim with this fence has ended.
            Conflict: the log is at another position, or contains one of the ids.
            ArtifactExists: the board has an artifact with the same id and other content.
            InvalidArtifact: an artifact cannot be stored.
            UnknownKind: the codec does not know the kind of an event.
            UsageError: an event has another run or position, or the store is closed.
            StoreUnavailable: nothing was stored, or it is found by a retry.
        """
        if not events:
            await self._database.ready()
            return ()
        statement, values = self.append_call(run, events, expected, fence)
        outcome, reached = await self._write(run, events, statement, values)
        if outcome == "lost":
            raise LeaseLost(run.id)
        if outcome == "damaged":
            raise LogDamaged(run.id, 1)
        if outcome == "elsewhere":
            return await self._stored_batch(run, events, expected, reached)
        self._tell(run)
        return events

    def _tell(self, run: RunKey) -> None:
        self._signals.notify(run)
        self._signals.notify(COMMITS)

    async def branch(
        self, run: RunKey, origin: str, at: int, events: Sequence[Event]
    ) -> Sequence[Event]:
        """Start a run with the first `at` events of another run of its tenant, and append events.

        Raises:
            UnknownRun: the origin does not exist.
            Conflict: the run exists.
            ArtifactExists: the board has an artifact with the same id and other content.
            InvalidArtifact: an artifact cannot be stored.
            UnknownKind: the codec does not know the kind of an event.
            UsageError: the origin cannot be cut there, an event has another run or position, there
                are no events, or the store is closed.
            StoreUnavailable: nothing was stored, or it is found by a retry.
        """
        statement, values = self.branch_call(run, origin, at, events)
        outcome, reached = await self._write(run, events, statement, values)
        if outcome == "stored":
            self._tell(run)
            return events
        if outcome == "elsewhere":
            return await self._stored_batch(run, events, at, reached)
        raise not_branched(outcome, run, RunKey(run.tenant, origin), at=at, reached=reached or 0)

    def append_call(
        self, run: RunKey, events: Sequence[Event], expected: int, fence: int | None = None
    ) -> Call:
        """The statement that appends events after a position.

        Raises:
            Conflict: two of them have the same id.
            UsageError: one of them has another run or position.
        """
        check_batch(run.id, events, expected)
        batch, begun = self._batch(run, events), events[0].data
        named = (begun.workflow, begun.user) if isinstance(begun, RunStarted) else (None, None)
        started = microseconds(events[0].at)
        values = (*run, expected, fence, batch.keys, batch.data, *named, started, *batch[2:])
        return queries.APPEND, values

    def branch_call(self, run: RunKey, origin: str, at: int, events: Sequence[Event]) -> Call:
        """The statement that starts a run as a branch.

        Raises:
            Conflict: two events have the same id.
            UsageError: there are no events, or one of them has another run or position.
        """
        check_branch(run.id, events, at)
        batch, started = self._batch(run, events), microseconds(events[0].at)
        values = (*run, origin, at, batch.keys, batch.data, started, *batch[2:])
        return queries.BRANCH, values

    def _batch(self, run: RunKey, events: Sequence[Event]) -> _Batch:
        """The events as one batch, with what belongs to them.

        Raises:
            Conflict: two of them have the same id.
        """
        # Encoded JSON has no line breaks: those in texts are escaped.
        data = self._codec.encode_lines(events)
        keys = [key_of(event.id) for event in events]
        if len({*keys}) < len(keys):
            raise Conflict(f"Two events for run {run.id!r} have the same id.")
        side: dict[str, Any] = {}
        if self._board and (projection := project(events)):
            side |= added_artifacts(rows_of(run.tenant, projection.artifacts))
            side |= added_consumptions(run.tenant, projection.consumptions)
        if seen := observations(run.tenant, events):
            side |= added_outcomes(seen)
        last = events[-1]
        return _Batch(
            keys,
            data,
            status_of(last),
            microseconds(last.at) if last.kind in ENDS else None,
            mail=[key_of(event.id) for event in events if event.kind in MAIL_KINDS] or None,
            side=JsonValue(side) if side else None,
        )

    async def _write(
        self, run: RunKey, events: Sequence[Event], statement: Query, values: Sequence[Any]
    ) -> tuple[str, int | None]:
        try:
            [(outcome, reached)] = await self._database.write(statement, *values)
        except StoreUnavailable as error:
            raise refused_batch(run, events, error) or error from error.__cause__
        return outcome, reached

    async def _stored_batch(
        self, run: RunKey, events: Sequence[Event], expected: int, reached: int | None
    ) -> Sequence[Event]:
        """The stored events at a batch's position, if they are the same batch."""
        lines = await self._lines(run, expected)
        stored = tuple(map(self._codec.decode, islice(lines, len(events))))
        if [event.id for event in stored] != [event.id for event in events]:
            raise Conflict(
                f"Run {run.id!r} is at position {reached or 0}, not {expected}: another writer "
                "appended events. Read the run again first."
            )
        return stored

    # ------------------------------------------------------------------ reading

    async def _lines(self, run: RunKey, after: int) -> list[bytes]:
        """Some events of a run after a position; fewer than `PAGE_BATCHES` only at its end.

        Raises:
            LogDamaged: some are missing.
        """
        values = (after, after, PAGE_BATCHES, *run, after, PAGE_BATCHES)
        found: list[bytes] = []
        wanted = after + 1
        for first, last, data in await self._database.rows(queries.BATCHES, *values):
            lines: list[bytes] = data.split(b"\n")
            if first > wanted:
                raise LogDamaged(run.id, wanted, first - 1)
            if len(lines) != last + 1 - first:
                raise LogDamaged(run.id, first, last)
            found += lines[wanted - first :]
            wanted = last + 1
        return found

    async def read(self, run: RunKey, after: int = 0) -> Sequence[Event]:
        """The events of a run after position `after`, in order; empty for an unknown run."""
        events: list[Event] = []
        while True:
            lines = await self._lines(run, after)
            events += await self._decoded(run, after, lines)
            after += len(lines)
            if len(lines) < PAGE_BATCHES:
                return events

    async def _decoded(self, run: RunKey, after: int, lines: Sequence[bytes]) -> list[Event]:
        def decode() -> list[Event]:
            return [
                self._codec.decode(line, run.id, seq) for seq, line in enumerate(lines, after + 1)
            ]

        return decode() if len(lines) <= AT_ONCE else await anyio.to_thread.run_sync(decode)

    async def commits(self) -> AsyncGenerator[None]:
        """Yields at once, and then whenever something may have been appended."""
        while True:
            waiting = self._signals.expect(COMMITS)
            try:
                yield
                await waiting.wait()
            finally:
                waiting.forget()

    async def subscribe(self, run: RunKey, after: int = 0) -> AsyncGenerator[Event]:
        """Every event after `after`, including future ones, each once and in order."""
        waiting = self._signals.expect(run, after)
        try:
            while True:
                lines = await self._lines(run, after)
                for line in lines:
                    waiting.after = after = after + 1
                    yield self._codec.decode(line, run.id, after)
                if len(lines) < PAGE_BATCHES:  # later events are notified, or found by a poll
                    await waiting.wait()
                    waiting.forget()
                    waiting = self._signals.expect(run, after)
        finally:
            waiting.forget()

    async def ends(self, run: RunKey) -> tuple[Event, Event] | None:
        """The first and the last event of a run; None for an unknown run."""
        for _, id, _, first, last in await self._database.rows(queries.ENDS_OF, *run):
            if first is None or last is None:
                raise LogDamaged(run.id, 1)
            return self._codec.decode(_first(first), id, 1), self._codec.decode(_last(last), id)
        return None

    async def batch_end(self, run: RunKey, seq: int) -> int:
        """The position of the last event that was appended with the one at `seq`.

        Raises:
            UnknownRun: the run does not exist.
            UsageError: it has no event at this position, or the store is closed.
            LogDamaged: the event is missing.
            StoreUnavailable: the server fails or does not answer in time.
        """
        for last, end in await self._database.rows(queries.BATCH_AT, seq, seq, seq, *run):
            if seq > 0 and last is not None and last >= seq:
                return last
            raise _no_event(run, seq, end or 0)
        raise UnknownRun(run.id)

    async def runs(
        self,
        tenant: str,
        limit: int,
        *,
        before: str | None = None,
        unfinished: bool = False,
        which: RunFilter = EVERY_RUN,
    ) -> Sequence[tuple[Event, Event]]:
        """The first and the last event of at most `limit` runs of a tenant, newest first.

        Raises:
            UnknownRun: the run `before` does not exist.
            UsageError: the store is closed.
            StoreUnavailable: the server fails or does not answer in time.
        """
        number = END if before is None else await self._number(tenant, before)
        statuses = _statuses(which, unfinished=unfinished)
        most = min(limit, PAGE_RUNS)
        values: dict[str, Any] = {
            "tenant": tenant,
            "most": most,
            "statuses": statuses,
            "workflow": which.workflow,
            "user": which.user,
            "since": which.since and microseconds(which.since),
            "until": which.until and microseconds(which.until),
        }
        statement = queries.ENDS_CHOSEN if statuses is None else queries.ENDS_BY_STATUS
        found: list[tuple[Event, Event]] = []
        while len(found) < limit:
            rows = await self._database.rows(statement, **values, before=number)
            shown = (self._shown(*row[1:]) for row in rows)
            chosen = (each for each in shown if is_chosen(which, *each))
            found += islice(chosen, limit - len(found))
            if len(rows) < most:
                break
            number = rows[-1][0]
        return found

    def _shown(
        self, id: str, started: int, first: bytes | None, last: bytes | None
    ) -> tuple[Event, Event]:
        show, begun = self._codec.show, _instant(started)
        return listed_first(show(_first(first), id), id, begun), show(_last(last), id)

    async def named(self, tenant: str, prefix: str, limit: int) -> Sequence[str]:
        """Up to `limit` run ids of a tenant that start with a prefix, sorted."""
        if "\0" in prefix:
            return []  # no id has one, and PostgreSQL refuses it
        rows = await self._database.rows(queries.NAMED, tenant, prefix, prefix, limit)
        return [id for (id,) in rows]

    async def _number(self, tenant: str, run: str) -> int:
        for (n,) in await self._database.rows(queries.NUMBER_OF, tenant, run):
            return n
        raise UnknownRun(run)


def refused_batch(
    run: RunKey, events: Sequence[Event], error: StoreUnavailable
) -> Conflict | ArtifactExists | None:
    """Why the server refused events, if it did."""
    code, said = refusal(error)
    if code == queries.ARTIFACT_EXISTS:
        return ArtifactExists(said)
    if code == queries.ID_TAKEN:
        taken = [event.id for event in events][int(said) - 1 : int(said)]
        return Conflict(f"Run {run.id!r} already has an event {', '.join(map(repr, taken))}.")
    return None


def _statuses(which: RunFilter, *, unfinished: bool) -> list[str] | None:
    """The statuses that a filter may choose; None for all. A run that cannot be read may have had
    any status when it was written."""
    asked = which.statuses if which.statuses and BROKEN not in which.statuses else None
    if unfinished:
        return sorted(_UNFINISHED if asked is None else _UNFINISHED & asked)
    return None if asked is None else sorted(asked)


def _first(data: bytes | None) -> bytes:
    return (data or b"").partition(b"\n")[0]


def _last(data: bytes | None) -> bytes:
    return (data or b"").rpartition(b"\n")[2]


def _instant(started: int) -> datetime:
    return EPOCH + started * TICK


def _no_event(run: RunKey, seq: int, end: int) -> Exception:
    return LogDamaged(run.id, seq) if 0 < seq <= end else no_position(run.id, seq, end)


def not_branched(outcome: str, run: RunKey, origin: RunKey, at: int, reached: int) -> Exception:
    """Why a run did not branch."""
    if outcome == "unknown":
        return UnknownRun(origin.id)
    if outcome == "exists":
        return run_exists(run.id)
    if outcome == "inside":
        check_cut(origin.id, at, reached)
    return _no_event(origin, at, reached)
