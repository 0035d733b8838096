"""The SQLite file, its connections, and the one way to write to it."""

import asyncio
import logging
import sqlite3
import threading
from collections.abc import AsyncGenerator, Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

import anyio
import anyio.to_thread

from turnloom.adapters.sqlite import queries
from turnloom.adapters.sqlite.connections import (
    Files,
    connect,
    connect_reader,
    connect_writer,
    mismatch,
    prepare,
)
from turnloom.adapters.sqlite.faults import is_busy, unavailable
from turnloom.adapters.sqlite.places import Places, RunEnd
from turnloom.adapters.sqlite.writer import StoreWrite, Writer, runs_of
from turnloom.errors import StoreUnavailable, UsageError
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
        self, writes: list[StoreWrite[Any]], places: dict[RunKey, RunEnd]
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

    def _commit(self, writes: list[StoreWrite[Any]], places: dict[RunKey, RunEnd]) -> None:
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


def _commit_with(
    writer: Writer, writes: list[StoreWrite[Any]], places: dict[RunKey, RunEnd]
) -> None:
    """Commit writes with what somebody else knows of their runs, and tell what is known then."""
    writer.places.put(places)
    try:
        writer.commit(writes)
    finally:
        places.clear()
        places.update(writer.places.take(runs_of(writes)))


# Seconds between two looks at whether another process wrote, while somebody waits.
INTERVAL = 0.1


class Signals:
    """Who waits for which topic. Rung by this process's writes, and by others' through a look."""

    def __init__(self, version: Callable[[], int]) -> None:
        self._version = version
        self._seen: int | None = None
        self._waiting: dict[Hashable, list[asyncio.Future[None]]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def __bool__(self) -> bool:
        return bool(self._waiting)

    async def wait(self, topic: Hashable) -> None:
        """Wait until something may have come; call it straight after having looked in vain."""
        loop = asyncio.get_running_loop()
        bell: asyncio.Future[None] = loop.create_future()
        self._waiting.setdefault(topic, []).append(bell)
        if self._timer is None or self._loop is not loop:
            self._arm(loop)
        try:
            await bell
        finally:
            self._forget(topic, bell)

    def ring(self, topic: Hashable) -> None:
        """Wake those who wait for a topic."""
        for bell in self._waiting.pop(topic, ()):
            if not bell.done():
                bell.set_result(None)

    def ring_all(self) -> None:
        """Wake everybody."""
        for topic in tuple(self._waiting):
            self.ring(topic)

    def stop(self) -> None:
        """Look no more."""
        if self._timer:
            self._timer.cancel()
            self._timer = None

    def _arm(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._timer = loop.call_later(INTERVAL, self._look)

    def _look(self) -> None:
        self._timer = None
        if not self._waiting or self._loop is None:
            return
        try:
            version = self._version()
        except sqlite3.Error:
            version = None  # whoever waits looks for himself, and meets the error
        if version is None or version != self._seen:
            self._seen = version
            self.ring_all()
        self._arm(self._loop)

    def _forget(self, topic: Hashable, bell: asyncio.Future[None]) -> None:
        bells = self._waiting.get(topic)
        if bells and bell in bells:
            bells.remove(bell)
            if not bells:
                del self._waiting[topic]


T = TypeVar("T")
P = ParamSpec("P")
Row = TypeVar("Row")

# Gives some rows behind a mark, and the mark to go on from: None when there are no more.
Page = Callable[[sqlite3.Connection, int], tuple[list[Row], int | None]]

# Seconds between two tries to open a file that is locked.
PAUSE = 0.02
# Seconds that a short read waits, on the loop's thread, for another process that opens or closes.
GLANCE = 1.0

# Stands for the version of a file that is gone: whoever waits for a change looks, and is told.
LOST = -1


class DatabaseFile:
    """One file. Nothing is opened before the first use."""

    def __init__(
        self, path: Path, patience: float, checkpoint_after: int, *, is_synced: bool = False
    ) -> None:
        self.path = path.absolute()
        self._is_synced = is_synced
        self.signals = Signals(self._version)
        self._patience = patience
        self._checkpoint_after = checkpoint_after
        self._background = Background(self.path, patience, is_synced=is_synced)
        self._writer: Writer | None = None
        self._reader: sqlite3.Connection | None = None
        self._opening: asyncio.Future[None] | None = None
        # The writes of this tick of the loop.
        self._gathered: list[StoreWrite[Any]] = []
        # The size of the WAL at which it is brought into the file.
        self._checkpoint_at = checkpoint_after
        self._closed = False
        self._files: Files | None = None
        # Why nothing can be done with the file any more.
        self._lost = ""

    @property
    def closed(self) -> bool:
        """Whether the store was closed."""
        return self._closed

    # ------------------------------------------------------------------ writing

    async def write(self, write: StoreWrite[T]) -> T:
        """Make a change; all changes of one tick of the loop are one transaction.

        Raises:
            StoreUnavailable: nothing was stored; the same change may be tried again later.
        """
        if self._writer is None or self._closed or self._lost:
            await self.ready()
        gathered = self._gathered
        gathered.append(write)
        try:
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            if gathered is self._gathered:
                gathered.remove(write)
            raise
        if gathered is self._gathered:
            self._flush()
        if write.outcome:
            await asyncio.shield(write.outcome)
        if write.error:
            raise write.error
        return write.result

    def _flush(self) -> None:
        """Commit the writes that have gathered: whoever of them comes first does it for all."""
        writes, self._gathered = self._gathered, []
        writer = self._writer
        assert writer is not None
        if self._is_synced:
            self._hand_over(writes, writer.places)
            return
        try:
            writer.commit(writes)
        except sqlite3.Error as error:
            if is_busy(error):
                self._hand_over(writes, writer.places)
            else:
                _fail(writes, unavailable(error, self.path))
        except BaseException:
            writer.forget(writes)
            _fail(writes, StoreUnavailable("The write was interrupted; try it again."))
            raise
        else:
            self._committed(writes)

    def _hand_over(self, writes: list[StoreWrite[Any]], places: Places) -> None:
        """Let the background wait for the lock, with what is remembered of the runs concerned. It
        opens the file anew, so that must be the right one."""
        if self._is_lost():
            _fail(writes, StoreUnavailable(self._lost))
            return
        lent = places.take(runs_of(writes))

        def done(_: "asyncio.Future[None]") -> None:
            places.put(lent)
            self._committed(writes)

        outcome = self._background.commit(writes, lent)
        outcome.add_done_callback(done)
        for write in writes:
            write.outcome = outcome

    def _committed(self, writes: list[StoreWrite[Any]]) -> None:
        """Tell those who wait, and see to the size of the WAL. What went into a file that is gone
        was not stored."""
        if self._is_lost():
            _fail(writes, StoreUnavailable(self._lost))
        for write in writes:
            if write.topic is not None and write.error is None and self.signals:
                self.signals.ring(write.topic)
        self._contain_wal()

    def _contain_wal(self) -> None:
        """Bring the WAL into the file when it has grown. One that could not be begun anew, as when
        somebody reads, is tried again when it has grown by as much."""
        size = self._files.wal_size() if self._files else 0
        if size < self._checkpoint_after:
            self._checkpoint_at = self._checkpoint_after
        elif size >= self._checkpoint_at and not self._closed:
            self._checkpoint_at = size + self._checkpoint_after
            self._background.checkpoint()

    # ------------------------------------------------------------------ reading

    def rows(self, query: str, *values: int | str) -> list[Any]:
        """The few rows that a query gives.

        Raises:
            StoreUnavailable: the file cannot be opened or read.
        """
        return self.look(_fetch, query, values)

    def look(
        self,
        read: Callable[Concatenate[sqlite3.Connection, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """What a short read gives, on the loop's thread.

        Raises:
            StoreUnavailable: the file cannot be opened or read.
        """
        self._check_open()
        if self._is_lost():
            raise StoreUnavailable(self._lost)
        try:
            if self._reader is None:
                self._open()
            assert self._reader is not None
            return read(self._reader, *args, **kwargs)
        except sqlite3.Error as error:
            raise unavailable(error, self.path) from error

    async def pages(
        self, page: Page[Row], mark: int, *, at_once: bool = True
    ) -> AsyncGenerator[list[Row], None]:
        """All rows behind a mark: the first page at once, unless that may take long, and the others
        read in a thread."""
        await self.ready()
        more: int | None = mark
        if at_once:
            rows, more = self.look(page, mark)
            yield rows
        if more is None:
            return
        try:
            with closing(connect_reader(self.path, self._patience)) as reader:
                while more is not None:
                    rows, more = await anyio.to_thread.run_sync(page, reader, more)
                    yield rows
        except sqlite3.Error as error:
            raise unavailable(error, self.path) from error

    # ------------------------------------------------------------------ opening and closing

    async def ready(self) -> None:
        """Open the file if it is not.

        Raises:
            UsageError: the store was closed.
            StoreUnavailable: the file cannot be opened.
        """
        self._check_open()
        if self._writer:
            return
        try:
            if self._opening is None and not self._open_at_once():
                self._opening = self._background.run(self._keep_opening)
            if self._opening:
                await asyncio.shield(self._opening)
        except sqlite3.Error as error:
            raise unavailable(error, self.path) from error
        finally:
            if self._opening and self._opening.done():
                self._opening = None
        self._check_open()

    def _open_at_once(self) -> bool:
        """Open the file unless it is locked, and tell which."""
        try:
            self._open()
        except sqlite3.OperationalError as error:
            if not is_busy(error):
                raise
            return False
        return True

    def _keep_opening(self) -> None:
        """Try again for a while: the switch to WAL does not wait for a lock by itself."""
        for _ in range(int(self._patience / PAUSE)):
            if self._open_at_once():
                return
            threading.Event().wait(PAUSE)
        self._open()

    def _open(self) -> None:
        writer = prepare(self.path)
        self._reader = connect_reader(self.path, GLANCE)
        self._writer = Writer(writer)
        self._files = Files(self.path)

    async def aclose(self) -> None:
        """Finish what is pending and close the file; a second call changes nothing."""
        if self._closed:
            return
        self._closed = True
        if self._gathered:
            self._flush()
        self.signals.stop()
        self.signals.ring_all()
        if self._writer or self._opening:
            with anyio.CancelScope(shield=True):
                await self._background.close(self._close)

    def _close(self) -> None:
        if self._writer is None or self._reader is None:
            return
        self._reader.close()
        try:
            if not self._lost:
                self._writer.execute(queries.TRUNCATE).fetchone()
        except sqlite3.Error as error:
            _log.warning("No checkpoint of %s at its end: %s.", self.path, error)
        self._writer.connection.close()

    def _check_open(self) -> None:
        if self._closed:
            raise UsageError("This store is closed. Open a new one.")
        if self._lost:
            raise StoreUnavailable(self._lost)

    def check_schema(self) -> None:
        """See that no other release changed the schema since the file was opened.

        Raises:
            StoreUnavailable: one did, and from now on nothing is done.
        """
        if problem := self.look(mismatch, self.path):
            self._lost = problem
            raise StoreUnavailable(problem)

    def _is_lost(self) -> bool:
        """Whether the files are not those that were opened: from then on, nothing is done."""
        if self._files is not None and not self._lost:
            self._lost = self._files.loss(asyncio.get_running_loop().time())
        return bool(self._lost)

    def _version(self) -> int:
        assert self._writer is not None
        if self._is_lost():
            return LOST
        return self._writer.data_version()


def _fetch(reader: sqlite3.Connection, query: str, values: tuple[int | str, ...]) -> list[Any]:
    return reader.execute(query, values).fetchall()


def _fail(writes: list[StoreWrite[Any]], error: Exception) -> None:
    for write in writes:
        write.error = error
