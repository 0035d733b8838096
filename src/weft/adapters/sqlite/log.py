"""The event log in a SQLite file."""

import asyncio
import sqlite3
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, closing
from functools import partial
from itertools import islice

from weft.adapters.sqlite import queries
from weft.adapters.sqlite.database import Database
from weft.adapters.sqlite.writer import SEQ_BITS, Place, Write, Writer
from weft.errors import Conflict, UsageError
from weft.log.logic import Codec
from weft.log.spec import Event

# The most that is read, and decoded, before the loop gets its turn: rows, and bytes.
PAGE_ROWS = 200
PAGE_BYTES = 2**20
# The most events that one statement inserts, and the values that each of them has.
STATEMENT_ROWS = 16
COLUMNS = 4
# Behind every run.
END = 2**62


class _Append(Write[Sequence[Event]]):
    __slots__ = ("_codec", "_events", "_expected", "_rows", "_run")

    def __init__(self, run: str, events: Sequence[Event], expected: int, codec: Codec) -> None:
        encode = codec.encode
        self._rows = [encode(event) for event in events]
        for seq, event in enumerate(events, expected + 1):
            if event.seq != seq or event.run != run:
                raise UsageError(
                    f"Event {event.id!r} says run {event.run!r}, seq {event.seq}, "
                    f"but was offered to run {run!r} at {seq}. Make it for the place it goes to."
                )
        self._run = run
        self._events = events
        self._expected = expected
        self._codec = codec
        self.topic = run
        self.size = sum(map(len, self._rows))
        self.error = None

    def is_one_statement(self, writer: Writer) -> bool:
        place = writer.places.get(self._run)
        return (
            place is not None
            and place.position == self._expected
            and len(self._rows) <= STATEMENT_ROWS
        )

    def apply(self, writer: Writer) -> Sequence[Event]:
        place = writer.places.get(self._run)
        if place is None or place.position != self._expected:
            place = writer.locate(self._run)
            if (place.position if place else 0) != self._expected:
                return self._standing(writer, place)
        self._insert(writer, place or writer.begin_run(self._run))
        return self._events

    def _insert(self, writer: Writer, place: Place) -> None:
        n = place.n
        pos = (n << SEQ_BITS) + self._expected
        values: list[int | str | bytes] = []
        for event, row in zip(self._events, self._rows, strict=True):
            pos += 1
            values += (pos, n, event.id, row)
        count = len(self._rows)
        if count <= STATEMENT_ROWS:
            writer.execute(queries.add_events(count), values)
        else:
            for start in range(0, len(values), STATEMENT_ROWS * COLUMNS):
                some = values[start : start + STATEMENT_ROWS * COLUMNS]
                writer.execute(queries.add_events(len(some) // COLUMNS), some)
        place.position += count

    def _standing(self, writer: Writer, place: Place | None) -> Sequence[Event]:
        """What stands where the batch belongs, if it is the same batch."""
        base = ((place.n if place else 0) << SEQ_BITS) + self._expected
        found = writer.execute(queries.EVENTS_BETWEEN, (base + 1, base + len(self._events)))
        stored = tuple(self._codec.decode(data) for (data,) in found.fetchall())
        if [event.id for event in stored] != [event.id for event in self._events]:
            raise Conflict(
                f"Run {self._run!r} is at position {place.position if place else 0}, not "
                f"{self._expected}: somebody else wrote. Read the run again before writing."
            )
        return stored


class SqliteLog:
    """An event log in a SQLite file, for any number of processes."""

    def __init__(self, database: Database, codec: Codec) -> None:
        self._database = database
        self._codec = codec

    async def append(self, run: str, events: Sequence[Event], expected: int) -> Sequence[Event]:
        """Store events after position `expected`, all or none, and give back what the log holds.

        Raises:
            Conflict: the log is at another position, or one of the ids is taken.
            UnknownKind: an event is of a kind that the codec does not know.
            UsageError: an event names another run or position, or the store is closed.
            StoreUnavailable: nothing was stored; the same append may be tried again later.
        """
        if not events:
            await self._database.ready()
            return ()
        return await self._database.write(_Append(run, events, expected, self._codec))

    async def read(self, run: str, after: int = 0) -> Sequence[Event]:
        """The events of a run behind position `after`, in order; none for an unknown run."""
        decode = self._codec.decode
        events: list[Event] = []
        async with aclosing(self._database.pages(partial(_events_page, run=run), after)) as pages:
            async for rows in pages:
                events += [decode(row) for row in rows]
        return events

    async def subscribe(self, run: str, after: int = 0) -> AsyncGenerator[Event]:
        """Every event behind `after`, those to come included, each once and in order."""
        await self._database.ready()
        while True:
            rows, more = self._database.look(_events_page, after, run)
            for row in rows:
                after += 1
                yield self._codec.decode(row)
            if more is not None:
                await asyncio.sleep(0)
            elif not rows:
                await self._database.signals.wait(run)

    async def ends(
        self, limit: int | None = None, *, run: str | None = None
    ) -> Sequence[tuple[Event, Event]]:
        """The first and the last event of each run, the run begun last coming first; or of one."""
        decode = self._codec.decode
        if run is not None:
            await self._database.ready()
            rows = self._database.rows(queries.ENDS_OF, run)
            return [(decode(first), decode(last)) for first, last in rows]
        ends: list[tuple[Event, Event]] = []
        async with aclosing(self._database.pages(_ends_page, END)) as pages:
            async for rows in pages:
                wanted = islice(rows, None if limit is None else limit - len(ends))
                ends += [(decode(first), decode(last)) for first, last in wanted]
                if len(ends) == limit:
                    break
        return ends


def _events_page(
    reader: sqlite3.Connection, after: int, run: str
) -> tuple[list[bytes], int | None]:
    rows: list[bytes] = []
    size = 0
    with closing(reader.execute(queries.EVENTS_AFTER, (run, after, PAGE_ROWS))) as found:
        for (data,) in found:
            rows.append(data)
            size += len(data)
            if size >= PAGE_BYTES:
                break
    more = len(rows) == PAGE_ROWS or size >= PAGE_BYTES
    return rows, after + len(rows) if more else None


def _ends_page(
    reader: sqlite3.Connection, before: int
) -> tuple[list[tuple[bytes, bytes]], int | None]:
    rows = reader.execute(queries.ENDS_BEFORE, (before, PAGE_ROWS // 2)).fetchall()
    more = rows[-1][0] if len(rows) == PAGE_ROWS // 2 else None
    return [(first, last) for _, first, last in rows], more
