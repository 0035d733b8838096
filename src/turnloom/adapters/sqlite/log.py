"""The event log in a SQLite file."""

import asyncio
import sqlite3
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, closing
from functools import partial
from itertools import chain, islice

from turnloom.adapters.sqlite import queries
from turnloom.adapters.sqlite.batches import SEQ_BITS, digest_of, lines_after, page_after
from turnloom.adapters.sqlite.database import DatabaseFile
from turnloom.adapters.sqlite.inbox import consumed
from turnloom.adapters.sqlite.keeping import Keeping
from turnloom.adapters.sqlite.listing import RunsPage, begun_run, ended_at, ends_of_row
from turnloom.adapters.sqlite.places import RunEnd
from turnloom.adapters.sqlite.small import Observing
from turnloom.adapters.sqlite.writer import StoreWrite, Writer
from turnloom.board.logic.rows import project, rows_of
from turnloom.errors import Conflict, LeaseLost, LogDamaged, UnknownRun, UsageError
from turnloom.guards.logic.selection import observations
from turnloom.log.logic import Codec, is_chosen, status_of
from turnloom.log.spec import EVERY_RUN, Event, RunFilter, RunKey

# Behind every run.
END = 2**62


class _Append(StoreWrite[Sequence[Event]]):
    __slots__ = (
        "_beside",
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
        beside: Sequence[StoreWrite[None]],
    ) -> None:
        seq, id = expected, run.id
        for event in events:
            seq += 1
            if event.seq != seq or event.run != id:
                raise UsageError(
                    f"Event {event.id!r} says run {event.run!r}, seq {event.seq}, "
                    f"but was offered to run {id!r} at {seq}. Make it for the place it goes to."
                )
        # JSON has no line breaks of its own: those inside texts are escaped.
        self._data = codec.encode_lines(events)
        self._ids = {event.id for event in events}
        if len(self._ids) < len(events):
            raise Conflict(f"Two events that were offered to run {id!r} have the same id.")
        self._run = run
        self._events = events
        self._expected = expected
        self._fence = fence
        self._codec = codec
        self._beside = beside
        self._status = status_of(events[-1])
        self._ended = ended_at(events[-1])
        self.topic = run
        self.error = self.outcome = None

    def apply_alone(self, writer: Writer) -> bool:
        place = writer.places.get(self._run)
        if (
            place is None
            or self._beside
            or place.status != self._status
            or not place.position == place.known == self._expected
            or not place.ids.isdisjoint(self._ids)
        ):
            return False
        self._insert(writer, place)
        self.result = self._events
        return True

    def apply(self, writer: Writer) -> Sequence[Event]:
        place = writer.places.get(self._run)
        if place is None or place.position != self._expected:
            place = writer.locate(self._run)
        if (place.position if place else 0) != self._expected:
            self._check_fence(writer)
            return self._standing(writer, place)
        if place and (taken := self._ids & writer.ids(self._run, place)):
            raise Conflict(f"Run {self._run.id!r} already holds an event {min(taken)!r}.")
        if self._beside or place is None:
            self._check_fence(writer)
        for each in self._beside:
            each.apply(writer)
        if place is None:
            place = writer.begin_run(self._run, begun_run(self._events))
        elif place.status != self._status:
            writer.execute(queries.SET_STATUS, (self._ended, self._status, place.n))
        self._insert(writer, place)
        place.status = self._status
        return self._events

    def _check_fence(self, writer: Writer) -> None:
        """Refuse to write under a claim that is over, before anything else is changed."""
        if self._fence is not None and not writer.is_in_force(self._fence):
            raise LeaseLost(self._run.id)

    def _insert(self, writer: Writer, place: RunEnd) -> None:
        before = (place.n << SEQ_BITS) + self._expected
        last = before + len(self._events)
        digest = digest_of(place.digest, self._data)
        row = (before + 1, last, self._data, digest, self._fence)
        if not writer.execute(queries.ADD_BATCH, row).rowcount:
            raise LeaseLost(self._run.id)
        writer.places.extend(self._run, place, self._ids, digest)

    def _standing(self, writer: Writer, place: RunEnd | None) -> Sequence[Event]:
        """What stands where the batch belongs, if it is the same batch."""
        with closing(lines_after(writer.connection, self._run, self._expected)) as batches:
            lines = islice(chain.from_iterable(batches), len(self._events))
            stored = tuple(map(self._codec.decode, lines))
        if [event.id for event in stored] != [event.id for event in self._events]:
            raise Conflict(
                f"Run {self._run.id!r} is at position {place.position if place else 0}, not "
                f"{self._expected}: somebody else wrote. Read the run again before writing."
            )
        return stored


class SqliteLog:
    """An event log in a SQLite file, for any number of processes.

    What the events say of outcomes, and with `board` of the board, is kept in the same file and
    transaction.
    """

    def __init__(self, database: DatabaseFile, codec: Codec, *, board: bool = True) -> None:
        self._database = database
        self._codec = codec
        self._board = board

    async def append(
        self, run: RunKey, events: Sequence[Event], expected: int, fence: int | None = None
    ) -> Sequence[Event]:
        """Store events after position `expected`, all or none, and give back what the log holds.

        Raises:
            LeaseLost: the claim of this fence is over.
            Conflict: the log is at another position, or one of the ids is taken.
            ArtifactExists: an artifact is on the board beside it, with other content.
            InvalidArtifact: an artifact cannot be kept as it is.
            UnknownKind: an event is of a kind that the codec does not know.
            UsageError: an event names another run or position, or the store is closed.
            StoreUnavailable: nothing was stored; the same append may be tried again later.
        """
        if not events:
            await self._database.ready()
            return ()
        beside = self._beside(run, events)
        append = _Append(run, events, expected, fence, codec=self._codec, beside=beside)
        return await self._database.write(append)

    def _beside(self, run: RunKey, events: Sequence[Event]) -> list[StoreWrite[None]]:
        """What is to be changed together with the log; who may refuse comes first."""
        changes: list[StoreWrite[None]] = []
        tenant = run.tenant
        if self._board and (told := project(events)):
            rows = rows_of(tenant, told.artifacts)
            changes.append(Keeping(tenant, rows, told.consumptions))
        if seen := observations(tenant, events):
            changes.append(Observing(seen))
        if mail := consumed(run, events):
            changes.append(mail)
        return changes

    async def read(self, run: RunKey, after: int = 0) -> Sequence[Event]:
        """The events of a run behind position `after`, in order; none for an unknown run."""
        page = partial(_events_page, run=run, codec=self._codec)
        events: list[Event] = []
        async with aclosing(self._database.pages(page, after)) as pages:
            async for found in pages:
                events += found
        return events

    async def subscribe(self, run: RunKey, after: int = 0) -> AsyncGenerator[Event]:
        """Every event behind `after`, those to come included, each once and in order."""
        await self._database.ready()
        while True:
            rows, more = self._database.look(page_after, after, run)
            for row in rows:
                after += 1
                yield self._codec.decode(row, run.id, after)
            if more is not None:
                await asyncio.sleep(0)
            elif not rows:
                await self._database.signals.wait(run)

    async def ends(self, run: RunKey) -> tuple[Event, Event] | None:
        """The first and the last event of a run, if there is such a run."""
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
        """The first and the last event of at most `limit` runs of a tenant that a filter chooses,
        the run begun last coming first.

        Raises:
            UnknownRun: there is no run `before`.
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
        """At most `limit` ids of runs of a tenant that begin with a prefix, in their order."""
        await self._database.ready()
        return [id for (id,) in self._database.rows(queries.RUNS_NAMED, tenant, prefix, limit)]

    def _number(self, tenant: str, run: str | None) -> int:
        """The number of a run; one behind all of them if none is named."""
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
