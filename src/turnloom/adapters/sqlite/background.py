"""What can wait for a disk or for another process, in one thread that starts when first needed."""

import asyncio
import logging
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

from turnloom.adapters.sqlite import queries
from turnloom.adapters.sqlite.connections import connect, connect_writer
from turnloom.adapters.sqlite.faults import is_busy, unavailable
from turnloom.adapters.sqlite.places import Place
from turnloom.adapters.sqlite.writer import Write, Writer, runs_of
from turnloom.log.spec import RunKey

# Seconds for which a reader may hold up the beginning of a new WAL.
CHECKPOINT_WAIT = 0.05

_log = logging.getLogger("turnloom.sqlite")


class Background:
    """One thread for one file; its work is done in the order in which it was given."""

    def __init__(self, path: Path, patience: float, *, is_synced: bool = False) -> None:
        self._path = path
        self._is_synced = is_synced
        self._patience = patience
        self._thread = ThreadPoolExecutor(1, "turnloom-sqlite")
        self._writer: Writer | None = None

    def run(self, work: Callable[[], None]) -> "asyncio.Future[None]":
        """Do a piece of work."""
        return asyncio.get_running_loop().run_in_executor(self._thread, work)

    def commit(
        self, writes: list[Write[Any]], places: dict[RunKey, Place]
    ) -> "asyncio.Future[None]":
        """Commit writes when the file's lock is free; a failure is recorded in each of them.

        `places` is what is known of their runs, and afterwards what is known then.
        """
        return self.run(lambda: self._commit(writes, places))

    def checkpoint(self) -> None:
        """Bring the WAL into the file, some time soon."""
        self._thread.submit(self._checkpoint)

    async def close(self, work: Callable[[], None]) -> None:
        """Finish everything, do one last piece of work, and end the thread."""
        await self.run(lambda: self._close(work))
        self._thread.shutdown(wait=False)

    def _commit(self, writes: list[Write[Any]], places: dict[RunKey, Place]) -> None:
        try:
            if self._writer is None:
                connection = connect_writer(self._path, self._patience)
                if self._is_synced:
                    connection.execute(queries.SYNCED)
                self._writer = Writer(connection)
            _commit_with(self._writer, writes, places)
        except Exception as error:  # noqa: BLE001 - given to each who waits
            for write in writes:
                write.error = unavailable(error, self._path)

    def _checkpoint(self) -> None:
        """Copy while others write, then the rest while they wait, then begin the WAL anew, at no
        size: commits look at its size to know when to do this again."""
        try:
            with closing(connect(self._path, CHECKPOINT_WAIT)) as connection:
                connection.execute(queries.CHECKPOINT).fetchone()
                blocked, _, _ = connection.execute(queries.TRUNCATE).fetchone()
                if not blocked:
                    connection.execute(queries.TOUCH)
        except sqlite3.Error as error:
            level = logging.DEBUG if is_busy(error) else logging.WARNING
            _log.log(level, "No checkpoint of %s: %s. The next one tries again.", self._path, error)

    def _close(self, work: Callable[[], None]) -> None:
        if self._writer:
            self._writer.connection.close()
        work()


def _commit_with(writer: Writer, writes: list[Write[Any]], places: dict[RunKey, Place]) -> None:
    """Commit writes with what somebody else knows of their runs, and tell what is known then."""
    writer.places.put(places)
    try:
        writer.commit(writes)
    finally:
        places.clear()
        places.update(writer.places.take(runs_of(writes)))
