"""The event log in a SQLite file."""

import sqlite3
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, closing
from functools import partial
from itertools import chain, islice

from turnloom.adapters.sqlite import queries
from turnloom.adapters.sqlite.batches import SEQ_BITS, digest_of, lines_after, page_after
from turnloom.adapters.sqlite.board_writes import AddToBoard
from turnloom.adapters.sqlite.database import DatabaseFile
from turnloom.adapters.sqlite.inbox import clear_mail_of
from turnloom.adapters.sqlite.listing import RunsPage, begun_run, ended_at, ends_of_row
from turnloom.adapters.sqlite.run_ends import RunEnd
from turnloom.adapters.sqlite.small import AddObservations
from turnloom.adapters.sqlite.writer import StoreWrite, Writer
from turnloom.board.logic.rows import project, rows_of
from turnloom.errors import Conflict, LeaseLost, LogDamaged, UnknownKind, UnknownRun, UsageError
from turnloom.guards.logic.selection import observations
from turnloom.log.logic import Codec, is_chosen, status_of
from turnloom.log.spec import EVERY_RUN, Event, RunFilter, RunKey

# Greater than the number of any run.
END = 2**62


class _Append(StoreWrite[Sequence[Event]]):
    __slots__ = (
        "_side_writes",
        "_codec",
        "_data",
        "_ended",
        "_events",
        "_expected",
        "_fence",
        "_ids",
        "_run",
        "_status",
    )

    def __init__(
        self,
        run: RunKey,
        events: Sequence[Event],
        expected: int,
        fence: int | None,
        codec: Codec,
        side_writes: Sequence[StoreWrite[None]],
    ) -> None:
        seq, id = expected, run.id
        for event in events:
            seq += 1
            if event.seq != seq or event.run != id:
                raise UsageError(
                    f"Event {event.id!r} has run {event.run!r} and seq {event.seq}, but is "
                    f"appended to run {id!r} at {seq}. Create it for the right run and seq."
                )
        # Encoded JSON has no line breaks: those in texts are escaped.
        self._data = codec.encode_lines(events)
        self._ids = {event.id for event in events}
        if len(self._ids) < len(events):
            raise Conflict(f"Two events for run {id!r} have the same id.")
        self._run = run
        self._events = events
        self._expected = expected
        self._fence = fence
        self._codec = codec
        self._side_writes = side_writes
        self._status = status_of(events[-1])
        self._ended = ended_at(events[-1])
        self.topic = run
        self.error = self.outcome = None

    def apply_alone(self, writer: Writer) -> bool:
        run_end = writer.run_ends.get(self._run)
        if (
            run_end is None
            or self._side_writes
            or run_end.status != self._status
            or not run_end.position == run_end.known == self._expected
            or not run_end.ids.isdisjoint(self._ids)
        ):
            return False
        self._insert(writer, run_end)
        self.result = self._events
        return True

    def apply(self, writer: Writer) -> Sequence[Event]:
        run_end = writer.run_ends.get(self._run)
        if run_end is None or run_end.position != self._expected:
            run_end = writer.locate(self._run)
        if (run_end.position if run_end else 0) != self._expected:
            self._check_fence(writer)
            return self._stored_batch(writer, run_end)
        if run_end and (taken := self._ids & writer.ids(self._run, run_end)):
            raise Conflict(f"Run {self._run.id!r} already has an event {min(taken)!r}.")
        if self._side_writes or run_end is None:
            self._check_fence(writer)
        for each in self._side_writes:
            each.apply(writer)
        if run_end is None:
            run_end = writer.begin_run(self._run, begun_run(self._events))
        elif run_end.status != self._status:
            writer.execute(queries.SET_STATUS, (self._ended, self._status, run_end.n))
        self._insert(writer, run_end)
        run_end.status = self._status
        return self._events

    def _check_fence(self, writer: Writer) -> None:
        """Raise if the claim has ended, before anything is changed."""
        if self._fence is not None and not writer.is_in_force(self._fence):
            raise LeaseLost(self._run.id)

    def _insert(self, writer: Writer, run_end: RunEnd) -> None:
        before = (run_end.n << SEQ_BITS) + self._expected
        last = before + len(self._events)
        digest = digest_of(run_end.digest, self._data)
        row = (before + 1, last, self._data, digest, self._fence)
        if not writer.execute(queries.ADD_BATCH, row).rowcount:
            raise LeaseLost(self._run.id)
        writer.run_ends.extend(self._run, run_end, self._ids, digest)

    def _stored_batch(self, writer: Writer, run_end: RunEnd | None) -> Sequence[Event]:
        """The stored events at the batch's position, if they are the same batch."""
        with closing(lines_after(writer.connection, self._run, self._expected)) as batches:
            lines = islice(chain.from_iterable(batches), len(self._events))
            stored = tuple(map(self._codec.decode, lines))
        if [event.id for event in stored] != [event.id for event in self._events]:
            raise Conflict(
                f"Run {self._run.id!r} is at position {run_end.position if run_end else 0}, not "
                f"{self._expected}: another writer appended events. Read the run again first."
            )
        return stored


class SqliteLog:
    """An event log in a SQLite file, for any number of processes.

    Outcomes in events, and with `board` also artifacts, are stored in the same file and
    transaction.
    """

    def __init__(self, database: DatabaseFile, codec: Codec, *, board: bool = True) -> None:
        self._database = database
        self._codec = codec
        self._board = board

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
            StoreUnavailable: nothing was stored; a retry may succeed later.
        """
        if not events:
            await self._database.ready()
            return ()
        side_writes = self._side_writes(run, events)
        append = _Append(run, events, expected, fence, codec=self._codec, side_writes=side_writes)
        return await self._database.write(append)

    def _side_writes(self, run: RunKey, events: Sequence[Event]) -> list[StoreWrite[None]]:
        """The writes to make together with the log. Those that may be refused come first."""
        changes: list[StoreWrite[None]] = []
        tenant = run.tenant
        if self._board and (projection := project(events)):
            rows = rows_of(tenant, projection.artifacts)
            changes.append(AddToBoard(tenant, rows, projection.consumptions))
        if seen := observations(tenant, events):
            changes.append(AddObservations(seen))
        if mail := clear_mail_of(run, events):
            changes.append(mail)
        return changes

    async def read(self, run: RunKey, after: int = 0) -> Sequence[Event]:
        """The events of a run after position `after`, in order; empty for an unknown run."""
        page = partial(_events_page, run=run, codec=self._codec)
        events: list[Event] = []
        async with aclosing(self._database.pages(page, after)) as pages:
            async for found in pages:
                events += found
        return events

    async def subscribe(self, run: RunKey, after: int = 0) -> AsyncGenerator[Event]:
        """Every event after `after`, including future ones, each once and in order."""
        page = partial(_readable_page, run=run, codec=self._codec)
        while True:
            begin = after
            async with aclosing(self._database.pages(page, after)) as pages:
                async for found in pages:
                    for event in found:
                        yield event
                    after += len(found)
            if after == begin:
                await self._database.signals.wait(run)

    async def ends(self, run: RunKey) -> tuple[Event, Event] | None:
        """The first and the last event of a run; None for an unknown run."""
        await self._database.ready()
        for row in self._database.rows(queries.ENDS_OF, *run):
            if row[2] is None:
                raise LogDamaged(run.id, 1)
            id, first, last = ends_of_row(row)
            return self._codec.decode(first, id, 1), self._codec.decode(last, id)
        return None

    async def runs(
        self,
        tenant: str,
        limit: int,
        *,
        before: str | None = None,
        unfinished: bool = False,
        which: RunFilter = EVERY_RUN,
    ) -> Sequence[tuple[Event, Event]]:
        """The first and the last event of up to `limit` runs of a tenant that match a filter,
        newest run first.

        Raises:
            UnknownRun: run `before` does not exist.
        """
        await self._database.ready()
        page = RunsPage(tenant, limit, which, unfinished=unfinished)
        ends: list[tuple[Event, Event]] = []
        show = self._codec.show
        at, is_quick = self._number(tenant, before), which == EVERY_RUN
        async with aclosing(self._database.pages(page, at, at_once=is_quick)) as pages:
            async for rows in pages:
                shown = ((show(first, id), show(last, id)) for id, first, last in rows)
                chosen = (each for each in shown if is_chosen(which, *each))
                ends += islice(chosen, limit - len(ends))
                if len(ends) == limit:
                    break
        return ends

    async def named(self, tenant: str, prefix: str, limit: int) -> Sequence[str]:
        """Up to `limit` run ids of a tenant that start with a prefix, sorted."""
        await self._database.ready()
        return [id for (id,) in self._database.rows(queries.RUNS_NAMED, tenant, prefix, limit)]

    def _number(self, tenant: str, run: str | None) -> int:
        """The number of a run, or one above all numbers if there is no run."""
        if run is None:
            return END
        for (n,) in self._database.rows(queries.NUMBER_OF, tenant, run):
            return n
        raise UnknownRun(run)


def _events_page(
    reader: sqlite3.Connection, after: int, run: RunKey, codec: Codec
) -> tuple[list[Event], int | None]:
    """Some events of a run, decoded where they are read: later pages in a thread."""
    rows, more = page_after(reader, after, run)
    return [codec.decode(row, run.id, seq) for seq, row in enumerate(rows, after + 1)], more


def _readable_page(
    reader: sqlite3.Connection, after: int, run: RunKey, codec: Codec
) -> tuple[list[Event], int | None]:
    """Some events of a run, up to one that cannot be decoded; if that is the first, its error."""
    rows, more = page_after(reader, after, run)
    events: list[Event] = []
    for seq, row in enumerate(rows, after + 1):
        try:
            events.append(codec.decode(row, run.id, seq))
        except UnknownKind:
            if events:
                return events, None
            raise
    return events, more
