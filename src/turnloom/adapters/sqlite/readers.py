"""Reads that may take long: in a thread, on a connection of their own, ended when nobody waits."""

import sqlite3
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import TypeVar

import anyio.to_thread

from turnloom.adapters.sqlite.connections import connect_reader
from turnloom.adapters.sqlite.faults import unavailable

T = TypeVar("T")

# Steps of SQLite between two looks at whether anybody still waits.
STRIDE = 10_000


class Readers:
    """Connections that read, opened when needed and kept for the next."""

    def __init__(self, path: Path, patience: float) -> None:
        self._path = path
        self._patience = patience
        self._idle: list[sqlite3.Connection] = []
        self._closed = False

    async def run(self, read: Callable[[sqlite3.Connection], T]) -> T:
        """What a read gives.

        Raises:
            StoreUnavailable: the file cannot be opened or read.
        """
        given_up = Event()
        try:
            return await anyio.to_thread.run_sync(
                self._perform, read, given_up, abandon_on_cancel=True
            )
        except sqlite3.Error as error:
            raise unavailable(error, self._path) from error
        finally:
            given_up.set()

    def close(self) -> None:
        """Close what is idle now, and the others when they are done."""
        self._closed = True
        while (reader := self._take()) is not None:
            reader.close()

    def _perform(self, read: Callable[[sqlite3.Connection], T], given_up: Event) -> T:
        reader = self._take() or connect_reader(self._path, self._patience)
        reader.set_progress_handler(given_up.is_set, STRIDE)
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
