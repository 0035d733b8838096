"""The SQLite file, its connections, and the single path for writes."""

import asyncio
import logging
import sqlite3
import threading
from collections.abc import AsyncGenerator, Callable, Hashable, Mapping
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
from turnloom.adapters.sqlite.run_ends import RunEnd, RunEndCache
from turnloom.adapters.sqlite.writer import COMMITS, StoreWrite, Writer, runs_of
from turnloom.errors import StoreUnavailable, UsageError
from turnloom.log.spec import RunKey

# Seconds to wait for readers that block a restart of the WAL.
CHECKPOINT_WAIT = 0.05

_log = logging.getLogger("turnloom.sqlite")


class Background:
    """One thread per file, which does its work in order."""

    def __init__(self, path: Path, patience: float, *, is_synced: bool = False) -> None:
        self._path = path
        self._is_synced = is_synced
        self._patience = patience
        self._thread = ThreadPoolExecutor(1, "turnloom-sqlite")
        self._writer: Writer | None = None

    def run(self, work: Callable[[], None]) -> "asyncio.Future[None]":
        """Run a function in the thread."""
        return asyncio.get_running_loop().run_in_executor(self._thread, work)

    def commit(
        self, writes: list[StoreWrite[Any]], run_ends: dict[RunKey, RunEnd]
    ) -> "asyncio.Future[None]":
        """Commit writes when the file's lock is free; a failure is recorded in each of them.

        `run_ends` is the cached state of their runs, and is updated.
        """
        return self.run(lambda: self._commit(writes, run_ends))

    def checkpoint(self) -> None:
        """Schedule a checkpoint of the WAL."""
        self._thread.submit(self._checkpoint)

    async def close(self, work: Callable[[], None]) -> None:
        """Finish all work, run one last function, and end the thread."""
        await self.run(lambda: self._close(work))
        self._thread.shutdown(wait=False)

    def _commit(self, writes: list[StoreWrite[Any]], run_ends: dict[RunKey, RunEnd]) -> None:
        try:
            if self._writer is None:
                connection = connect_writer(self._path, self._patience)
                if self._is_synced:
                    connection.execute(queries.SYNCED)
                self._writer = Writer(connection)
            _commit_with(self._writer, writes, run_ends)
        except Exception as error:  # noqa: BLE001 - raised by each caller
            for write in writes:
                write.error = unavailable(error, self._path)

    def _checkpoint(self) -> None:
        """Checkpoint without blocking writers, then block them for the rest, and truncate the WAL:
        commits use its size to decide when to checkpoint again."""
        try:
            with closing(connect(self._path, CHECKPOINT_WAIT)) as connection:
                connection.execute(queries.CHECKPOINT).fetchone()
                blocked, _, _ = connection.execute(queries.TRUNCATE).fetchone()
                if not blocked:
                    connection.execute(queries.TOUCH)
        except sqlite3.Error as error:
            level = logging.DEBUG if is_busy(error) else logging.WARNING
            _log.log(level, "Checkpoint of %s failed: %s. It will be retried.", self._path, error)

    def _close(self, work: Callable[[], None]) -> None:
        if self._writer:
            self._writer.connection.close()
        work()


def _commit_with(
    writer: Writer, writes: list[StoreWrite[Any]], run_ends: dict[RunKey, RunEnd]
) -> None:
    """Commit writes with another writer's cached state of their runs, and update that state."""
    writer.run_ends.put(run_ends)
    try:
        writer.commit(writes)
    finally:
        run_ends.clear()
        run_ends.update(writer.run_ends.take(runs_of(writes)))


# Seconds between two polls for writes of other processes, while there are waiters.
INTERVAL = 0.1


class Signals:
    """Waiters by topic. Writes of this process notify them at once, those of others by polling."""

    def __init__(self, version: Callable[[], int]) -> None:
        self._version = version
        self._seen: int | None = None
        self._waiting: dict[Hashable, list[asyncio.Future[None]]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def __bool__(self) -> bool:
        return bool(self._waiting)

    async def wait(self, topic: Hashable) -> None:
        """Wait until there may be news. Call it right after a read that found nothing."""
        waiter = self.expect(topic)
        try:
            await waiter
        finally:
            self.forget(topic, waiter)

    def expect(self, topic: Hashable) -> "asyncio.Future[None]":
        """A future of news from now on. Forget it at last."""
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[None] = loop.create_future()
        self._waiting.setdefault(topic, []).append(waiter)
        if self._timer is None or self._loop is not loop:
            self._arm(loop)
        return waiter

    def notify(self, topic: Hashable) -> None:
        """Wake the waiters of a topic."""
        for waiter in self._waiting.pop(topic, ()):
            if not waiter.done():
                waiter.set_result(None)

    def notify_all(self) -> None:
        """Wake all waiters."""
        for topic in tuple(self._waiting):
            self.notify(topic)

    def stop(self) -> None:
        """Stop polling."""
        if self._timer:
            self._timer.cancel()
            self._timer = None

    def _arm(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._timer = loop.call_later(INTERVAL, self._poll)

    def _poll(self) -> None:
        self._timer = None
        if not self._waiting or self._loop is None:
            return
        try:
            version = self._version()
        except sqlite3.Error:
            version = None  # waiters read for themselves, and get the error
        if version is None or version != self._seen:
            self._seen = version
            self.notify_all()
        self._arm(self._loop)

    def forget(self, topic: Hashable, waiter: "asyncio.Future[None]") -> None:
        """Wait for nothing any more."""
        waiters = self._waiting.get(topic)
        if waiters and waiter in waiters:
            waiters.remove(waiter)
            if not waiters:
                del self._waiting[topic]


T = TypeVar("T")
P = ParamSpec("P")
Row = TypeVar("Row")

# Returns some rows after a mark, and the mark to continue from; None after the last page.
Page = Callable[[sqlite3.Connection, int], tuple[list[Row], int | None]]

# Seconds between two attempts to open a locked file.
PAUSE = 0.02
# Seconds that a short read may block the event loop while another process opens or closes.
SHORT_WAIT = 1.0

# The version of a lost file: it makes waiters read, and get the error.
LOST = -1


class DatabaseFile:
    """One SQLite file, opened on first use."""

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
        # The writes of this tick of the event loop.
        self._pending: list[StoreWrite[Any]] = []
        # The WAL size at which the next checkpoint is due.
        self._checkpoint_at = checkpoint_after
        self._closed = False
        self._files: Files | None = None
        # Why the file can no longer be used.
        self._lost = ""

    @property
    def closed(self) -> bool:
        """Whether the store is closed."""
        return self._closed

    # ------------------------------------------------------------------ writing

    async def write(self, write: StoreWrite[T]) -> T:
        """Write a change. All changes in one tick of the event loop form one transaction.

        Raises:
            StoreUnavailable: nothing was stored; a retry may succeed later.
        """
        if self._writer is None or self._closed or self._lost:
            await self.ready()
        pending = self._pending
        pending.append(write)
        try:
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            if pending is self._pending:
                pending.remove(write)
            raise
        if pending is self._pending:
            self._flush()
        if write.outcome:
            await asyncio.shield(write.outcome)
        if write.error:
            raise write.error
        return write.result

    def _flush(self) -> None:
        """Commit the pending writes: the first caller does it for all."""
        writes, self._pending = self._pending, []
        writer = self._writer
        assert writer is not None
        if self._is_synced:
            self._commit_in_background(writes, writer.run_ends)
            return
        try:
            writer.commit(writes)
        except sqlite3.Error as error:
            if is_busy(error):
                self._commit_in_background(writes, writer.run_ends)
            else:
                _fail(writes, unavailable(error, self.path))
        except BaseException:
            writer.forget(writes)
            _fail(writes, StoreUnavailable("The write was interrupted. Try it again."))
            raise
        else:
            self._committed(writes)

    def _commit_in_background(self, writes: list[StoreWrite[Any]], run_ends: RunEndCache) -> None:
        """Let the background thread wait for the lock, with the cached state of the runs. It opens
        the file again, so the file must be the same."""
        if self._is_lost():
            _fail(writes, StoreUnavailable(self._lost))
            return
        borrowed = run_ends.take(runs_of(writes))

        def done(_: "asyncio.Future[None]") -> None:
            run_ends.put(borrowed)
            self._committed(writes)

        outcome = self._background.commit(writes, borrowed)
        outcome.add_done_callback(done)
        for write in writes:
            write.outcome = outcome

    def _committed(self, writes: list[StoreWrite[Any]]) -> None:
        """Notify waiters, and checkpoint a large WAL. Writes to a lost file fail."""
        if self._is_lost():
            _fail(writes, StoreUnavailable(self._lost))
        for write in writes:
            if write.topic is not None and write.error is None and self.signals:
                self.signals.notify(write.topic)
                self.signals.notify(COMMITS)
        self._checkpoint_if_large()

    def _checkpoint_if_large(self) -> None:
        """Checkpoint the WAL when it has grown. If readers block the restart, retry when it has
        grown by the same amount again."""
        size = self._files.wal_size() if self._files else 0
        if size < self._checkpoint_after:
            self._checkpoint_at = self._checkpoint_after
        elif size >= self._checkpoint_at and not self._closed:
            self._checkpoint_at = size + self._checkpoint_after
            self._background.checkpoint()

    # ------------------------------------------------------------------ reading

    def rows(self, query: str, *values: int | str) -> list[Any]:
        """The rows of a small query.

        Raises:
            StoreUnavailable: the file cannot be opened or read.
        """
        return self.read(_fetch, query, values)

    def named_rows(self, query: str, values: Mapping[str, Any]) -> list[Any]:
        """The rows of a small query with named values.

        Raises:
            StoreUnavailable: the file cannot be opened or read.
        """
        return self.read(_fetch, query, values)

    def read(
        self,
        query: Callable[Concatenate[sqlite3.Connection, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Run a short read in the event loop's thread.

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
            return query(self._reader, *args, **kwargs)
        except sqlite3.Error as error:
            raise unavailable(error, self.path) from error

    async def pages(
        self, page: Page[Row], mark: int, *, at_once: bool = True
    ) -> AsyncGenerator[list[Row], None]:
        """All rows after a mark: the first page directly, unless that may take long, and the others
        in a thread."""
        await self.ready()
        more: int | None = mark
        if at_once:
            rows, more = self.read(page, mark)
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
        """Open the file if needed.

        Raises:
            UsageError: the store is closed.
            StoreUnavailable: the file cannot be opened.
        """
        self._check_open()
        if self._writer:
            return
        try:
            if self._opening is None and not self._try_open():
                self._opening = self._background.run(self._keep_opening)
            if self._opening:
                await asyncio.shield(self._opening)
        except sqlite3.Error as error:
            raise unavailable(error, self.path) from error
        finally:
            if self._opening and self._opening.done():
                self._opening = None
        self._check_open()

    def _try_open(self) -> bool:
        """Open the file; returns False if it is locked."""
        try:
            self._open()
        except sqlite3.OperationalError as error:
            if not is_busy(error):
                raise
            return False
        return True

    def _keep_opening(self) -> None:
        """Retry for a while: the switch to WAL mode does not wait for locks."""
        for _ in range(int(self._patience / PAUSE)):
            if self._try_open():
                return
            threading.Event().wait(PAUSE)
        self._open()

    def _open(self) -> None:
        writer = prepare(self.path)
        self._reader = connect_reader(self.path, SHORT_WAIT)
        self._writer = Writer(writer)
        self._files = Files(self.path)

    async def aclose(self) -> None:
        """Finish pending writes and close the file. Idempotent."""
        if self._closed:
            return
        self._closed = True
        if self._pending:
            self._flush()
        self.signals.stop()
        self.signals.notify_all()
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
            _log.warning("Final checkpoint of %s failed: %s.", self.path, error)
        self._writer.connection.close()

    def _check_open(self) -> None:
        if self._closed:
            raise UsageError("This store is closed. Open a new one.")
        if self._lost:
            raise StoreUnavailable(self._lost)

    def check_schema(self) -> None:
        """Check that no other release changed the schema since the file was opened.

        Raises:
            StoreUnavailable: the schema changed; all later calls fail.
        """
        if problem := self.read(mismatch, self.path):
            self._lost = problem
            raise StoreUnavailable(problem)

    def _is_lost(self) -> bool:
        """Whether the files were deleted or replaced; from then on, all calls fail."""
        if self._files is not None and not self._lost:
            self._lost = self._files.loss(asyncio.get_running_loop().time())
        return bool(self._lost)

    def _version(self) -> int:
        assert self._writer is not None
        if self._is_lost():
            return LOST
        return self._writer.data_version()


def _fetch(
    reader: sqlite3.Connection, query: str, values: tuple[int | str, ...] | Mapping[str, Any]
) -> list[Any]:
    return reader.execute(query, values).fetchall()


def _fail(writes: list[StoreWrite[Any]], error: Exception) -> None:
    for write in writes:
        write.error = error
