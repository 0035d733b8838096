"""Writes that append events: to a run, or to a new run that branches off another one."""

from collections.abc import Sequence
from contextlib import closing
from itertools import chain, islice

from turnloom.adapters.sqlite import queries
from turnloom.adapters.sqlite.batches import SEQ_BITS, digest_of, lines_after
from turnloom.adapters.sqlite.branches import SharedSpan, cut_after, segments_of
from turnloom.adapters.sqlite.listing import BegunRun, begun_run, ended_at
from turnloom.adapters.sqlite.run_ends import RunEnd
from turnloom.adapters.sqlite.writer import StoreWrite, Writer
from turnloom.board.logic.rows import microseconds
from turnloom.errors import Conflict, LeaseLost, UnknownRun
from turnloom.log.logic import Codec, check_batch, run_exists, status_of
from turnloom.log.spec import Event, RunKey


class Append(StoreWrite[Sequence[Event]]):
    """Appends events to a run after a position, with the writes that belong to them."""

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
                check_batch(id, events, expected)
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
        """Append to a run whose end is cached, if nothing else changes."""
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
        """Append the events, and return them or those stored under their ids."""
        run_end = writer.run_ends.get(self._run)
        if run_end is None or run_end.position != self._expected:
            run_end = writer.locate(self._run)
        if (run_end.position if run_end else 0) != self._expected:
            self._check_fence(writer)
            return self._stored_batch(writer, run_end)
        if run_end and (taken := writer.taken(self._run, run_end, self._ids)):
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


class BeginBranch(Append):
    """Starts a run with the first events of another one, and appends events to it."""

    __slots__ = ("_origin",)

    def __init__(
        self,
        run: RunKey,
        origin: str,
        at: int,
        events: Sequence[Event],
        *,
        codec: Codec,
        side_writes: Sequence[StoreWrite[None]],
    ) -> None:
        super().__init__(run, events, at, None, codec=codec, side_writes=side_writes)
        self._origin = RunKey(run.tenant, origin)

    def apply_alone(self, writer: Writer) -> bool:
        """It takes several statements."""
        return False

    def apply(self, writer: Writer) -> Sequence[Event]:
        """Start the branch, or return what is stored of it."""
        origin = writer.locate(self._origin)
        if origin is None:
            raise UnknownRun(self._origin.id)
        segments, digest = cut_after(writer.connection, self._origin, origin.n, self._expected)
        existing = writer.locate(self._run)
        if existing is not None:
            if segments_of(writer.connection, existing.n) != segments:
                raise run_exists(self._run.id)
            return self._stored_batch(writer, existing)
        for each in self._side_writes:
            each.apply(writer)
        run_end = self._begin(writer, origin.n, segments)
        run_end.digest = digest
        run_end.position = self._expected
        self._insert(writer, run_end)
        writer.run_ends.forget(self._run)  # its inherited ids are looked up when it is continued
        return self._events

    def _begin(self, writer: Writer, origin: int, segments: Sequence[SharedSpan]) -> RunEnd:
        """Add the run: it is found by the workflow and the user of its origin."""
        workflow, user = writer.execute(queries.FOUND_BY, (origin,)).fetchone()
        started = microseconds(self._events[0].at)
        begun = BegunRun(workflow, user, started, self._status, ended=self._ended)
        run_end = writer.begin_run(self._run, begun)
        rows = [(run_end.n, *segment) for segment in segments]
        writer.connection.executemany(queries.ADD_SEGMENT, rows)
        return run_end
