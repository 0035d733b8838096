"""Drives runs as tasks of this process."""

import asyncio
import logging
from collections.abc import Mapping
from contextvars import Context, copy_context
from datetime import datetime
from functools import partial

from turnloom.adapters.inline.queue import Job, Queue
from turnloom.adapters.inline.timers import Timers
from turnloom.errors import UsageError
from turnloom.log.ports import Clock
from turnloom.log.spec import RunKey
from turnloom.runtime.ports import Drive, Status

_log = logging.getLogger("turnloom.inline")


class _Server:
    """What one call of `serve` brought: the drive, and the group that its tasks belong to."""

    __slots__ = ("_context", "_drive", "_group")

    def __init__(self, drive: Drive, group: asyncio.TaskGroup, context: Context) -> None:
        self._drive = drive
        self._group = group
        self._context = context

    def start(self, job: Job) -> "asyncio.Task[datetime | None]":
        """A task that drives the run, in the server's context and not in that of who woke it."""
        return self._group.create_task(self._guard(job.run), context=self._context.copy())

    async def _guard(self, run: RunKey) -> datetime | None:
        try:
            return await self._drive(run)
        except Exception:  # noqa: BLE001 - recorded; one bad drive must not stop the others
            _log.exception("The drive of run %r failed.", run.id)
            return None


class InlineScheduler:
    """Drives runs in this process; what it knows of them is gone with the process."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._jobs: dict[RunKey, Job] = {}
        self._tasks: dict[RunKey, asyncio.Task[datetime | None]] = {}
        self._queue = Queue()
        self._timers = Timers(clock, self._due)
        self._server: _Server | None = None
        self._serving = False

    async def wake(self, run: RunKey, at: datetime | None = None) -> None:
        """Drive the run soon, or at an instant: the run's one timer. Idempotent."""
        job = self._jobs.get(run)
        if job is None:
            job = self._jobs[run] = Job(run)
        if at is None or at <= self._clock.now():
            self._soon(job)
        else:
            self._timers.set(run, at)

    async def cancel(self, run: RunKey) -> None:
        """Drop what is queued for the run and interrupt its drive; does not wait for its end."""
        self._timers.drop(run)
        job = self._jobs.get(run)
        if job is None:
            return
        job.again = False
        if job.state == "driving":
            self._tasks[run].cancel()
        else:
            job.state = "dropped"
            del self._jobs[run]

    async def serve(self, drive: Drive, *, slots: int, limits: Mapping[str, int]) -> None:
        """Drive what is woken, at most `slots` at once and `limits` per tenant, until cancelled.

        When it is cancelled it interrupts the drives that run, and waits for their end.

        Raises:
            UsageError: this scheduler is being served already.
        """
        if self._serving:
            raise UsageError("This scheduler is being served already. Serve it once at a time.")
        self._serving = True
        try:
            async with asyncio.TaskGroup() as group:
                await self._run(_Server(drive, group, copy_context()), slots, limits)
        finally:
            self._serving = False

    async def status(self, run: RunKey) -> Status:
        """Where the run stands with this scheduler."""
        job = self._jobs.get(run)
        return "idle" if job is None or job.state == "dropped" else job.state

    async def _run(self, server: _Server, slots: int, limits: Mapping[str, int]) -> None:
        loop = asyncio.get_running_loop()
        self._server = server
        self._queue.open(slots, limits)
        self._timers.start(loop)
        try:
            self._pump()
            await loop.create_future()
        finally:
            self._server = None
            self._timers.stop()

    def _soon(self, job: Job) -> None:
        if job.state == "driving":
            job.again = True
        elif job.state == "timer":
            self._queue.put(job)
            self._pump()

    def _due(self, run: RunKey) -> None:
        self._soon(self._jobs[run])

    def _pump(self) -> None:
        """Start what may start now."""
        while self._server and (job := self._queue.take()):
            self._timers.drop(job.run)
            task = self._server.start(job)
            self._tasks[job.run] = task
            task.add_done_callback(partial(self._ended, job))

    def _ended(self, job: Job, task: "asyncio.Task[datetime | None]") -> None:
        """Put the run where it belongs after a drive: in the queue, on its timer, or away."""
        del self._tasks[job.run]
        self._queue.done(job)
        job.state = "timer"
        wanted = None if task.cancelled() or task.exception() else task.result()
        at = _earliest(wanted, self._timers.drop(job.run))
        now = at and self._clock.now()
        if job.again or (at and now and at <= now):
            job.again = False
            self._queue.put(job)
        elif at:
            self._timers.set(job.run, at)
        else:
            del self._jobs[job.run]
        self._pump()


def _earliest(a: datetime | None, b: datetime | None) -> datetime | None:
    return min(a, b) if a and b else a or b
