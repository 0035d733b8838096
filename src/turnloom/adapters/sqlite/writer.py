"""Transactions: many writes, one commit."""

import sqlite3
from asyncio import Future
from collections.abc import Callable, Iterator, Sequence, Set
from typing import Any, Final, Generic, Literal, TypeVar

import msgspec

from turnloom.adapters.sqlite import queries
from turnloom.adapters.sqlite.batches import SEQ_BITS, SEQ_MASK, decode_ids, encode_ids, ids_of
from turnloom.adapters.sqlite.branches import spans
from turnloom.adapters.sqlite.faults import WRITE_ERRORS, is_busy
from turnloom.adapters.sqlite.listing import BegunRun
from turnloom.adapters.sqlite.run_ends import RunEnd, RunEndCache
from turnloom.errors import LogDamaged, TurnloomError
from turnloom.log.spec import RunKey

T = TypeVar("T")

# The topic of readers of arriving messages; others wait for a run.
MAIL: Final = "mail"
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
        return run_end.taken(ids)

    def _look_up(self, run: RunKey, run_end: RunEnd) -> None:
        """Look up the ids of a run up to its end, unless they are known."""
        if not run_end.known:
            self._recall(run, run_end)
        if run_end.known < run_end.position:
            for ids in self._stored_ids(run_end.n, run_end.known, run_end.position):
                self.run_ends.add_ids(run, run_end, ids)
            run_end.known = run_end.position

    def ids_until(self, run: RunKey, run_end: RunEnd, at: int) -> tuple[Set[str], ...]:
        """The ids of a run up to the end of a batch, as sets that never change."""
        if at == run_end.position:
            self._look_up(run, run_end)
            return run_end.freeze()
        known, ids = self._kept_ids(run_end.n, at)
        return (ids.union(*self._stored_ids(run_end.n, known, at)),)

    def _stored_ids(self, n: int, above: int, upto: int) -> Iterator[list[str]]:
        """The ids of a run's events above a position, up to another; both end a batch."""
        for span in spans(self.connection, n, above, upto):
            base = span.source << SEQ_BITS
            found = self.connection.execute(
                queries.BATCHES_BETWEEN, (base + span.above, base + span.upto)
            )
            while rows := found.fetchmany(CHUNK):
                yield ids_of(b"\n".join(data for (data,) in rows))

    def keep_ids(self, run: RunKey) -> None:
        """Store the known ids of a run, so that it need not be read from its beginning."""
        run_end = self.run_ends.get(run)
        if run_end and run_end.known:
            ids = run_end.ids.union(*run_end.shared)
            self.execute(queries.KEEP_IDS, (run_end.n, run_end.known, encode_ids(ids)))

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

    def _recall(self, run: RunKey, run_end: RunEnd) -> None:
        known, ids = self._kept_ids(run_end.n, run_end.position)
        if known:
            self.run_ends.add_ids(run, run_end, ids)
            run_end.known = known

    def _kept_ids(self, n: int, upto: int) -> tuple[int, set[str]]:
        """The stored ids of a run and the position that they reach, if not beyond another."""
        kept = self.execute(queries.KEPT_IDS, (n,)).fetchone()
        if kept and kept[0] <= upto:
            try:
                return kept[0], decode_ids(kept[1])
            except (msgspec.MsgspecError, UnicodeDecodeError):
                pass  # they are read from the events instead
        return 0, set()

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
