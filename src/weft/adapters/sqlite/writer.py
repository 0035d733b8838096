"""Transactions: any number of writes, one commit."""

import sqlite3
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from weft.adapters.sqlite import queries
from weft.adapters.sqlite.faults import PERSONAL
from weft.errors import Conflict, WeftError

T = TypeVar("T")

# How many runs a writer remembers the end of.
REMEMBERED = 10_000
SEQ_BITS = 32
SEQ_MASK = (1 << SEQ_BITS) - 1


class Place:
    """Where a run ends: its number and its last position."""

    __slots__ = ("n", "position")

    def __init__(self, n: int, position: int) -> None:
        self.n = n
        self.position = position


class Write(Generic[T]):
    """One change of the store. It is refused alone, and stored together with others."""

    __slots__ = ("error", "result", "size", "topic")

    result: T

    def __init__(self, topic: str | None = None, size: int = 0) -> None:
        # Who may be waiting for it, about how many bytes it adds, and why it was refused.
        self.topic = topic
        self.size = size
        self.error: Exception | None = None

    def apply(self, writer: "Writer") -> T:
        """Make the change inside the writer's transaction; refusals come before any change."""
        raise NotImplementedError

    def is_one_statement(self, writer: "Writer") -> bool:
        """Whether the change needs no transaction around it."""
        return False


class Writer:
    """One connection that writes, and what it knows of where runs end.

    A remembered end can be late when another process writes too. That is safe: the log only grows,
    so an insert at a place that is taken meanwhile is refused by its key, and then we look.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self.execute = connection.cursor().execute
        # Where runs end, as remembered.
        self.places: dict[str, Place] = {}

    def commit(self, writes: Sequence[Write[Any]]) -> None:
        """Store the writes in one transaction; each that is refused has its error recorded.

        Raises:
            sqlite3.Error: the store failed, and nothing was stored.
        """
        try:
            if len(writes) == 1 and writes[0].is_one_statement(self):
                self._apply(writes[0])
            else:
                self._transact(writes, self._apply)
        except Exception as error:
            self.places.clear()
            if isinstance(error, sqlite3.Error) and not isinstance(error, PERSONAL):
                raise
            self._transact(writes, self._apply_apart)

    def locate(self, run: str) -> Place | None:
        """Where the run ends, looked up; None for an unknown run."""
        found = self.execute(queries.LOCATE_RUN, (run,)).fetchone()
        return self._remember(run, found[0], found[1] & SEQ_MASK) if found else None

    def begin_run(self, run: str) -> Place:
        """Give a run its number."""
        n = self.execute(queries.ADD_RUN, (run,)).lastrowid
        assert n is not None
        return self._remember(run, n, 0)

    def data_version(self) -> int:
        """A number that changes when another connection commits."""
        return self.execute(queries.DATA_VERSION).fetchone()[0]

    def _remember(self, run: str, n: int, position: int) -> Place:
        if len(self.places) >= REMEMBERED:
            self.places.clear()
        place = self.places[run] = Place(n, position)
        return place

    def _transact(self, writes: Sequence[Write[Any]], apply: Callable[[Write[Any]], None]) -> None:
        try:
            self.execute(queries.BEGIN)
            for write in writes:
                apply(write)
            self.execute(queries.COMMIT)
        except BaseException:
            self.places.clear()
            if self.connection.in_transaction:
                self.execute(queries.ROLLBACK)
            raise

    def _apply(self, write: Write[Any]) -> None:
        try:
            write.result = write.apply(self)
        except WeftError as refusal:
            write.error = refusal

    def _apply_apart(self, write: Write[Any]) -> None:
        """Make one change so that its failure undoes nothing but itself."""
        write.error = None
        self.execute(queries.SAVEPOINT)
        try:
            write.result = write.apply(self)
        except Exception as error:
            if isinstance(error, sqlite3.Error) and not isinstance(error, PERSONAL):
                raise
            self.places.clear()
            self.execute(queries.ROLLBACK_ONE)
            write.error = _refusal(error)
        self.execute(queries.RELEASE)


def _refusal(error: Exception) -> Exception:
    if isinstance(error, sqlite3.IntegrityError):
        return Conflict("One of these ids is already in the run's log.")
    return error
