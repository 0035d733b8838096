"""Transactions: any number of writes, one commit."""

import sqlite3
from asyncio import Future
from collections.abc import Callable, Sequence
from typing import Any, Final, Generic, Literal, TypeVar

import msgspec

from turnloom.adapters.sqlite import queries
from turnloom.adapters.sqlite.batches import SEQ_BITS, SEQ_MASK, decode_ids, encode_ids, ids_of
from turnloom.adapters.sqlite.faults import PERSONAL, is_busy
from turnloom.adapters.sqlite.listing import BegunRun
from turnloom.adapters.sqlite.places import Places, RunEnd
from turnloom.errors import LogDamaged, TurnloomError
from turnloom.log.spec import RunKey

T = TypeVar("T")

# What readers of arriving mail wait for; others wait for a run.
MAIL: Final = "mail"
Topic = RunKey | Literal["mail"]

# How many batches are read at once to learn the ids in them.
CHUNK = 100


class StoreWrite(Generic[T]):
    """One change of the store. It is refused alone, and stored together with others."""

    __slots__ = ("error", "outcome", "result", "topic")

    result: T

    def __init__(self, topic: Topic | None = None) -> None:
        # Who may be waiting for it; of an append: its run.
        self.topic = topic
        # Why it was refused, and what to wait for if it could not be made at once.
        self.error: Exception | None = None
        self.outcome: Future[None] | None = None

    def apply(self, writer: "Writer") -> T:
        """Make the change inside the writer's transaction; refusals come before any change."""
        raise NotImplementedError

    def apply_alone(self, writer: "Writer") -> bool:
        """Make the change if a single statement is enough, which needs no transaction around it."""
        return False


def runs_of(writes: Sequence[StoreWrite[Any]]) -> list[RunKey]:
    """The runs that writes append to."""
    return [write.topic for write in writes if isinstance(write.topic, RunKey)]


class Writer:
    """One connection that writes, and what it remembers of runs.

    What is remembered can be late when another process writes too. That is safe: the log only
    grows, so an insert at a place that is taken meanwhile is refused by its key, and then we look.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self.execute = connection.cursor().execute
        self.places = Places()

    def commit(self, writes: Sequence[StoreWrite[Any]]) -> None:
        """Store the writes in one transaction; each that is refused has its error recorded.

        Raises:
            sqlite3.Error: the store failed, and nothing was stored.
        """
        try:
            if len(writes) > 1 or not writes[0].apply_alone(self):
                self._transact(writes, self._apply)
        except Exception as error:
            if isinstance(error, sqlite3.Error) and not isinstance(error, PERSONAL):
                raise
            self.forget(writes)
            self._transact(writes, self._apply_apart)

    def locate(self, run: RunKey) -> RunEnd | None:
        """Where the run ends, looked up; None for an unknown run."""
        found = self.execute(queries.LOCATE_RUN, run).fetchone()
        if found is None:
            return None
        n, status, last, digest = found
        if last is None:
            raise LogDamaged(run.id, 1)
        position = last & SEQ_MASK
        place = self.places.get(run)
        if place is None or place.n != n or place.known > position:
            place = self.places.add(run, n)
        place.position = position
        place.status = status
        place.digest = digest
        return place

    def ids(self, run: RunKey, place: RunEnd) -> set[str]:
        """The ids of a run up to its place; those that are not known yet are looked up."""
        if not place.known:
            self._recall(run, place)
        if place.known < place.position:
            base = place.n << SEQ_BITS
            between = (base + place.known, base + place.position)
            found = self.execute(queries.BATCHES_BETWEEN, between)
            while rows := found.fetchmany(CHUNK):
                self.places.learn(run, place, ids_of(b"\n".join(data for (data,) in rows)))
            place.known = place.position
        return place.ids

    def keep_ids(self, run: RunKey) -> None:
        """Store the ids that are known of a run, so that it is not read from its beginning."""
        place = self.places.get(run)
        if place and place.known:
            self.execute(queries.KEEP_IDS, (place.n, place.known, encode_ids(place.ids)))

    def begin_run(self, run: RunKey, begun: BegunRun) -> RunEnd:
        """Give a run its number, and keep what it is found by."""
        n = self.execute(queries.ADD_RUN, (*run, *begun)).lastrowid
        assert n is not None
        return self.places.add(run, n)

    def is_in_force(self, fence: int) -> bool:
        """Whether a claim is there still: it goes when it is released, and when its run is taken by
        another process."""
        return self.execute(queries.IN_FORCE, (fence,)).fetchone() is not None

    def forget(self, writes: Sequence[StoreWrite[Any]]) -> None:
        """Remember nothing of the runs that writes append to: who knows what became of them."""
        for run in runs_of(writes):
            self.places.forget(run)

    def data_version(self) -> int:
        """A number that changes when another connection commits."""
        return self.execute(queries.DATA_VERSION).fetchone()[0]

    def _recall(self, run: RunKey, place: RunEnd) -> None:
        kept = self.execute(queries.KEPT_IDS, (place.n,)).fetchone()
        if kept and kept[0] <= place.position:
            try:
                ids = decode_ids(kept[1])
            except (msgspec.MsgspecError, UnicodeDecodeError):
                return  # they are read from the events again
            self.places.learn(run, place, ids)
            place.known = kept[0]

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

    def _apply_apart(self, write: StoreWrite[Any]) -> None:
        """Make one change so that its failure undoes nothing but itself."""
        write.error = None
        self.execute(queries.SAVEPOINT)
        try:
            write.result = write.apply(self)
        except Exception as error:
            if isinstance(error, sqlite3.Error) and not isinstance(error, PERSONAL):
                raise
            self.forget((write,))
            self.execute(queries.ROLLBACK_ONE)
            write.error = error
        self.execute(queries.RELEASE)
