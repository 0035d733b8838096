"""Long reads in threads, each on its own connection, interrupted when the caller is cancelled."""

import sqlite3
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import TypeVar

import anyio.to_thread

from turnloom.adapters.sqlite import queries
from turnloom.adapters.sqlite.connections import connect_reader
from turnloom.adapters.sqlite.faults import unavailable

T = TypeVar("T")

# SQLite instructions between two checks whether the caller still waits.
STRIDE = 10_000


@contextmanager
def reading(reader: sqlite3.Connection) -> Generator[None]:
    """All reads inside see the file as of one instant."""
    reader.execute(queries.BEGIN_READING)
    try:
        yield
    finally:
        reader.execute(queries.ROLLBACK)


class Readers:
    """A pool of read-only connections."""

    def __init__(self, path: Path, patience: float) -> None:
        self._path = path
        self._patience = patience
        self._idle: list[sqlite3.Connection] = []
        self._closed = False

    async def run(self, read: Callable[[sqlite3.Connection], T]) -> T:
        """Run a read in a thread.

        Raises:
            StoreUnavailable: the file cannot be opened or read.
        """
        abandoned = Event()
        try:
            return await anyio.to_thread.run_sync(
                self._perform, read, abandoned, abandon_on_cancel=True
            )
        except sqlite3.Error as error:
            raise unavailable(error, self._path) from error
        finally:
            abandoned.set()

    def close(self) -> None:
        """Close idle connections now, and others when they are done."""
        self._closed = True
        while (reader := self._take()) is not None:
            reader.close()

    def _perform(self, read: Callable[[sqlite3.Connection], T], abandoned: Event) -> T:
        reader = self._take() or connect_reader(self._path, self._patience)
        reader.set_progress_handler(abandoned.is_set, STRIDE)
        try:
            return read(reader)
        finally:
            self._idle.append(reader)
            if self._closed:
                self.close()

    def _take(self) -> sqlite3.Connection | None:
        try:
            return self._idle.pop()
        except IndexError:  # another thread may have been faster
            return None
