"""Transactions: many writes, one commit."""

import sqlite3
from asyncio import Future
from collections.abc import Callable, Collection, Iterator, Sequence, Set
from typing import Any, Final, Generic, Literal, TypeVar

import msgspec

from turnloom.adapters.sqlite import queries
from turnloom.adapters.sqlite.batches import SEQ_BITS, SEQ_MASK, decode_ids, encode_ids, ids_of
from turnloom.adapters.sqlite.branches import SharedSpan, spans
from turnloom.adapters.sqlite.faults import WRITE_ERRORS, is_busy
from turnloom.adapters.sqlite.listing import BegunRun
from turnloom.adapters.sqlite.run_ends import RunEnd, RunEndCache
from turnloom.errors import LogDamaged, TurnloomError
from turnloom.log.spec import RunKey

T = TypeVar("T")

# The topic of readers of arriving messages; others wait for a run.
MAIL: Final = "mail"
# The topic of readers of all runs.
COMMITS: Final = "commits"
Topic = RunKey | Literal["mail"]

# Batches read at once to collect their ids.
CHUNK = 100


class StoreWrite(Generic[T]):
    """One change of the store. It is committed together with others, but refused alone."""

    __slots__ = ("error", "outcome", "result", "topic")

    result: T

    def __init__(self, topic: Topic | None = None) -> None:
        # The topic to notify; for an append, its run.
        self.topic = topic
        # Why it was refused, and the future to wait for if it is not committed yet.
        self.error: Exception | None = None
        self.outcome: Future[None] | None = None

    def apply(self, writer: "Writer") -> T:
        """Make the change inside the writer's transaction; it refuses before it changes
        anything."""
        raise NotImplementedError

    def apply_alone(self, writer: "Writer") -> bool:
        """Make the change if a single statement without a transaction suffices."""
        return False


def runs_of(writes: Sequence[StoreWrite[Any]]) -> list[RunKey]:
    """The runs that writes append to."""
    return [write.topic for write in writes if isinstance(write.topic, RunKey)]


class Writer:
    """A connection that writes, with a cache of run ends.

    The cache may be outdated when other processes write. That is safe: the log only grows, so an
    insert at a taken position violates the primary key, and the end is then looked up.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self.execute = connection.cursor().execute
        self.run_ends = RunEndCache()

    def commit(self, writes: Sequence[StoreWrite[Any]]) -> None:
        """Commit the writes in one transaction; the error of each refused write is recorded in it.

        Raises:
            sqlite3.Error: the store failed, and nothing was stored.
        """
        try:
            if len(writes) > 1 or not writes[0].apply_alone(self):
                self._transact(writes, self._apply)
        except Exception as error:
            if isinstance(error, sqlite3.Error) and not isinstance(error, WRITE_ERRORS):
                raise
            self.forget(writes)
            self._transact(writes, self._apply_in_savepoint)

    def locate(self, run: RunKey) -> RunEnd | None:
        """Look up where the run ends; None for an unknown run."""
        found = self.execute(queries.LOCATE_RUN, run).fetchone()
        if found is None:
            return None
        n, status, last, digest = found
        if last is None:
            raise LogDamaged(run.id, 1)
        position = last & SEQ_MASK
        run_end = self.run_ends.get(run)
        if run_end is None or run_end.n != n or run_end.known > position:
            run_end = self.run_ends.add(run, n)
        run_end.position = position
        run_end.status = status
        run_end.digest = digest
        return run_end

    def taken(self, run: RunKey, run_end: RunEnd, ids: Set[str]) -> set[str]:
        """Those of some ids that a run has."""
        self._look_up(run, run_end)
        return run_end.ids & ids

    def _look_up(self, run: RunKey, run_end: RunEnd) -> None:
        """Look up the ids of a run up to its end, unless they are known."""
        if run_end.known < run_end.position:
            for ids in self._stored_ids(run_end.n, run_end.known, run_end.position):
                self.run_ends.add_ids(run, run_end, ids)
            run_end.known = run_end.position

    def _stored_ids(self, n: int, above: int, upto: int) -> Iterator[Collection[str]]:
        """The ids of a run's events above a position, up to another; both end a batch. Those from
        its beginning on are taken from the kept ones, if there are some."""
        for span in spans(self.connection, n, above, upto):
            known, data = (0, b"") if above else self._kept(span.source)
            if span.above < known <= span.upto and (ids := _decoded(data)) is not None:
                yield ids
                span = span._replace(above=known)
            for rows in self._batches(span):
                yield ids_of(b"\n".join(rows))

    def _batches(self, span: SharedSpan) -> Iterator[list[bytes]]:
        """The batches of a span, some at a time."""
        base = span.source << SEQ_BITS
        between = (base + span.above, base + span.upto)
        found = self.connection.execute(queries.BATCHES_BETWEEN, between)
        while rows := found.fetchmany(CHUNK):
            yield [data for (data,) in rows]

    def _kept(self, n: int) -> tuple[int, bytes]:
        """The position up to which ids of a run are kept, and these ids."""
        return self.execute(queries.KEPT_IDS, (n,)).fetchone() or (0, b"")

    def keep_ids(self, run: RunKey) -> None:
        """Store the known ids of a run, so that it need not be read from its beginning."""
        run_end = self.run_ends.get(run)
        if run_end and run_end.known:
            kept = encode_ids(run_end.ids)
            self.execute(queries.KEEP_IDS, (run_end.n, run_end.known, kept))

    def begin_run(self, run: RunKey, begun: BegunRun) -> RunEnd:
        """Add a run, with a new number and its searchable columns."""
        n = self.execute(queries.ADD_RUN, (*run, *begun)).lastrowid
        assert n is not None
        return self.run_ends.add(run, n)

    def is_in_force(self, fence: int) -> bool:
        """Whether a claim is valid: it ends when it is released, or when another process takes its
        run."""
        return self.execute(queries.IN_FORCE, (fence,)).fetchone() is not None

    def forget(self, writes: Sequence[StoreWrite[Any]]) -> None:
        """Drop the cached ends of the runs that writes append to: their state is unknown."""
        for run in runs_of(writes):
            self.run_ends.forget(run)

    def data_version(self) -> int:
        """A number that changes when another connection commits."""
        return self.execute(queries.DATA_VERSION).fetchone()[0]

    def _transact(
        self, writes: Sequence[StoreWrite[Any]], apply: Callable[[StoreWrite[Any]], None]
    ) -> None:
        try:
            self.execute(queries.BEGIN)
            for write in writes:
                apply(write)
            self.execute(queries.COMMIT)
        except BaseException as error:
            begun = self.connection.in_transaction
            if begun or not is_busy(error):
                self.forget(writes)
            if begun:
                self.execute(queries.ROLLBACK)
            raise

    def _apply(self, write: StoreWrite[Any]) -> None:
        try:
            write.result = write.apply(self)
        except TurnloomError as refusal:
            write.error = refusal

    def _apply_in_savepoint(self, write: StoreWrite[Any]) -> None:
        """Make one change in a savepoint, so that its failure undoes only itself."""
        write.error = None
        self.execute(queries.SAVEPOINT)
        try:
            write.result = write.apply(self)
        except Exception as error:
            if isinstance(error, sqlite3.Error) and not isinstance(error, WRITE_ERRORS):
                raise
            self.forget((write,))
            self.execute(queries.ROLLBACK_ONE)
            write.error = error
        self.execute(queries.RELEASE)


def _decoded(data: bytes) -> set[str] | None:
    """Kept ids; None if they are damaged, so that they are read from the events instead."""
    try:
        return decode_ids(data)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
