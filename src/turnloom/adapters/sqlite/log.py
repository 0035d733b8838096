"""The event log in a SQLite file."""

import sqlite3
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from functools import partial
from itertools import islice

import anyio.lowlevel

from turnloom.adapters.sqlite import queries
from turnloom.adapters.sqlite.appends import Append, BeginBranch
from turnloom.adapters.sqlite.batches import page_after
from turnloom.adapters.sqlite.board_writes import AddToBoard
from turnloom.adapters.sqlite.branches import batch_at
from turnloom.adapters.sqlite.database import DatabaseFile
from turnloom.adapters.sqlite.inbox import clear_mail_of
from turnloom.adapters.sqlite.listing import RunsPage, ends_of_row
from turnloom.adapters.sqlite.small import AddObservations
from turnloom.adapters.sqlite.writer import COMMITS, StoreWrite
from turnloom.board.logic.rows import project, rows_of
from turnloom.errors import LogDamaged, UnknownKind, UnknownRun
from turnloom.guards.logic.selection import observations
from turnloom.log.logic import Codec, check_branch, is_chosen, listed_first
from turnloom.log.spec import EVERY_RUN, Event, RunFilter, RunKey

# Greater than the number of any run.
END = 2**62


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
        return await self._database.write(self.append_of(run, events, expected, fence))

    def append_of(
        self, run: RunKey, events: Sequence[Event], expected: int, fence: int | None = None
    ) -> Append:
        """The write that appends events, with what goes with them."""
        side_writes = self._side_writes(run, events)
        return Append(run, events, expected, fence, codec=self._codec, side_writes=side_writes)

    async def batch_end(self, run: RunKey, seq: int) -> int:
        """The position of the last event that was appended with the one at `seq`.

        Raises:
            UnknownRun: the run does not exist.
            UsageError: it has no event at this position, or the store is closed.
            LogDamaged: the event is missing.
            StoreUnavailable: the file cannot be read.
        """
        await self._database.ready()
        number = self._number(run.tenant, run.id)
        return self._database.read(batch_at, run, number, seq).last

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
            StoreUnavailable: nothing was stored; a retry may succeed later.
        """
        return await self._database.write(self.branch_of(run, origin, at, events))

    def branch_of(self, run: RunKey, origin: str, at: int, events: Sequence[Event]) -> BeginBranch:
        """The write that begins a branch, with what goes with its events."""
        check_branch(run.id, events, at)
        side_writes = self._side_writes(run, events)
        return BeginBranch(run, origin, at, events, codec=self._codec, side_writes=side_writes)

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

    async def commits(self) -> AsyncGenerator[None]:
        """Yields at once, and then whenever something may have been appended."""
        signals = self._database.signals
        while True:
            await self._database.ready()
            waiter = signals.expect(COMMITS)
            try:
                yield
                await waiter
            finally:
                signals.forget(COMMITS, waiter)

    async def ends(self, run: RunKey) -> tuple[Event, Event] | None:
        """The first and the last event of a run; None for an unknown run."""
        await self._database.ready()
        for row in self._database.rows(queries.ENDS_OF, *run):
            if row[2] is None or row[3] is None:
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
        await anyio.lowlevel.checkpoint()  # a program that polls lets its runs continue
        page = RunsPage(tenant, limit, which, unfinished=unfinished)
        ends: list[tuple[Event, Event]] = []
        show = self._codec.show
        at, is_quick = self._number(tenant, before), which == EVERY_RUN
        async with aclosing(self._database.pages(page, at, at_once=is_quick)) as pages:
            async for rows in pages:
                shown = (
                    (listed_first(show(first, id), id, begun), show(last, id))
                    for id, first, last, begun in rows
                )
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
