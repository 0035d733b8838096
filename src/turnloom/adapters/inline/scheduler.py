"""Drive runs as tasks of this process."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextvars import Context, copy_context
from datetime import datetime
from functools import partial
from heapq import heapify, heappop, heappush
from itertools import count, islice
from typing import Literal

from turnloom.errors import UsageError
from turnloom.log.ports import Clock
from turnloom.log.spec import RunKey
from turnloom.runtime.ports import EVERY_TENANT, Drive, Status
from turnloom.runtime.spec import LimitWait, tenant_limit

State = Literal["timer", "queued", "driving", "dropped"]


class RunJob:
    """The scheduler's state of one run that is not idle."""

    __slots__ = ("again", "held_since", "run", "state")

    def __init__(self, run: RunKey) -> None:
        self.run = run
        # When it began to wait for the limit of its tenant.
        self.held_since: datetime | None = None
        self.state: State = "timer"
        self.again = False


class _Tenant:
    __slots__ = ("driving", "listed", "waiting")

    def __init__(self) -> None:
        self.waiting: deque[RunJob] = deque()
        self.driving = 0
        self.listed = False


class Queue:
    """Queue of runs to drive, within the number of slots and the limits of tenants."""

    def __init__(self) -> None:
        self._tenants: dict[str, _Tenant] = {}
        self._turns: deque[str] = deque()
        self._free = 0
        self._limits: Mapping[str, int] = {}

    def open(self, slots: int, limits: Mapping[str, int], now: datetime) -> None:
        """Allow `slots` runs at once, and `limits` per tenant."""
        self._free = slots
        self._limits = limits
        for name, tenant in self._tenants.items():
            limit = self.limit_of(name)
            room = limit and max(limit - tenant.driving, 0)
            for job in islice(tenant.waiting, room, None) if limit else ():
                job.held_since = now
            self._list(name, tenant)

    def put(self, job: RunJob, now: datetime) -> None:
        """Queue a run."""
        job.state = "queued"
        name = job.run.tenant
        tenant = self._tenants.setdefault(name, _Tenant())
        limit = self.limit_of(name)
        is_held = limit is not None and tenant.driving + len(tenant.waiting) >= limit
        job.held_since = now if is_held else None
        tenant.waiting.append(job)
        self._list(name, tenant)

    def take(self) -> RunJob | None:
        """Take the next run to drive; None if there is none, or no slot."""
        while self._free > 0 and self._turns:
            name = self._turns.popleft()
            tenant = self._tenants[name]
            tenant.listed = False
            job = _first(tenant.waiting) if self._below(name, tenant) else None
            if job:
                job.state = "driving"
                self._free -= 1
                tenant.driving += 1
                self._list(name, tenant)
                return job
            self._forget(name, tenant)
        return None

    def done(self, job: RunJob) -> None:
        """Release the slot of a run."""
        name = job.run.tenant
        tenant = self._tenants[name]
        tenant.driving -= 1
        self._free += 1
        self._list(name, tenant)
        self._forget(name, tenant)

    def limit_of(self, name: str) -> int | None:
        """The number of runs of a tenant that may be driven at once."""
        return self._limits.get(name, self._limits.get(EVERY_TENANT))

    def _below(self, name: str, tenant: _Tenant) -> bool:
        limit = self.limit_of(name)
        return limit is None or tenant.driving < limit

    def _list(self, name: str, tenant: _Tenant) -> None:
        """Put the tenant at the end of the rotation, once, if it has a run that may start."""
        if not tenant.listed and tenant.waiting and self._below(name, tenant):
            tenant.listed = True
            self._turns.append(name)

    def _forget(self, name: str, tenant: _Tenant) -> None:
        if not tenant.waiting and not tenant.driving and not tenant.listed:
            del self._tenants[name]


def _first(waiting: deque[RunJob]) -> RunJob | None:
    """The first run that is still queued; dropped ones are skipped."""
    while waiting:
        job = waiting.popleft()
        if job.state == "queued":
            return job
    return None


# The longest sleep in seconds, so that clock changes and system sleep are noticed.
LONGEST = 0.25
# Below this size, the heap keeps dropped timers until they are due.
SPARSE = 64

_Entry = tuple[datetime, int, RunKey]


class Timers:
    """Timers of runs; a run has at most one."""

    def __init__(self, clock: Clock, fire: Callable[[RunKey], None]) -> None:
        self._clock = clock
        self._fire = fire
        self._entries: dict[RunKey, _Entry] = {}
        self._heap: list[_Entry] = []
        self._numbers = count()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._handle: asyncio.TimerHandle | None = None

    def __contains__(self, run: RunKey) -> bool:
        return run in self._entries

    def set(self, run: RunKey, at: datetime) -> None:
        """Set the timer of a run, replacing its earlier one."""
        entry = (at, next(self._numbers), run)
        self._entries[run] = entry
        heappush(self._heap, entry)
        if len(self._heap) > SPARSE + 2 * len(self._entries):
            self._heap = list(self._entries.values())
            heapify(self._heap)
        if self._heap[0] is entry:
            self._arm()

    def drop(self, run: RunKey) -> datetime | None:
        """Remove the timer of a run, and return its time."""
        entry = self._entries.pop(run, None)
        return entry[0] if entry else None

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Fire timers on this loop from now on."""
        self._loop = loop
        self._arm()

    def stop(self) -> None:
        """Fire no timer until the next start."""
        if self._handle:
            self._handle.cancel()
        self._loop = self._handle = None

    def _arm(self) -> None:
        if self._handle:
            self._handle.cancel()
            self._handle = None
        if self._loop and self._heap:
            wait = (self._heap[0][0] - self._clock.now()).total_seconds()
            self._handle = self._loop.call_later(min(max(wait, 0.0), LONGEST), self._tick)

    def _tick(self) -> None:
        now = self._clock.now()
        while self._heap and (self._heap[0][0] <= now or self._stale(self._heap[0])):
            entry = heappop(self._heap)
            if not self._stale(entry):
                del self._entries[entry[2]]
                self._fire(entry[2])
        self._arm()

    def _stale(self, entry: _Entry) -> bool:
        return self._entries.get(entry[2]) is not entry


_log = logging.getLogger("turnloom.inline")


class _Server:
    """State of one call of `serve`: the drive, and the group of its tasks."""

    __slots__ = ("_context", "_drive", "_group")

    def __init__(self, drive: Drive, group: asyncio.TaskGroup, context: Context) -> None:
        self._drive = drive
        self._group = group
        self._context = context

    def start(self, job: RunJob, held: LimitWait | None) -> "asyncio.Task[datetime | None]":
        """Start a task that drives the run, in the server's context instead of the caller's."""
        return self._group.create_task(self._guard(job.run, held), context=self._context.copy())

    async def _guard(self, run: RunKey, held: LimitWait | None) -> datetime | None:
        try:
            return await self._drive(run, held)
        except Exception:  # noqa: BLE001 - recorded; one bad drive must not stop the others
            _log.exception("Driving run %r failed.", run.id)
            return None


class InlineScheduler:
    """Drives runs in this process. Its queue and timers are lost when the process ends."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._jobs: dict[RunKey, RunJob] = {}
        self._tasks: dict[RunKey, asyncio.Task[datetime | None]] = {}
        self._queue = Queue()
        self._timers = Timers(clock, self._due)
        self._server: _Server | None = None
        self._serving = False
        self._draining: asyncio.Future[None] | None = None

    async def wake(self, run: RunKey, at: datetime | None = None) -> None:
        """Drive the run soon, or at a given time: a run has one timer. Idempotent."""
        job = self._jobs.get(run)
        if job is None:
            job = self._jobs[run] = RunJob(run)
        if at is None or at <= self._clock.now():
            self._soon(job)
        else:
            self._timers.set(run, at)

    async def cancel(self, run: RunKey) -> None:
        """Remove the run from the queue and interrupt its drive, without waiting for it to end."""
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
        """Drive woken runs, at most `slots` at once and `limits` per tenant, until cancelled.

        On cancellation, it interrupts the running drives and waits for them to end.

        Raises:
            UsageError: `serve` is running already.
        """
        if self._serving:
            raise UsageError("This scheduler is running already. Call `serve` once at a time.")
        self._serving = True
        try:
            async with asyncio.TaskGroup() as group:
                await self._run(_Server(drive, group, copy_context()), slots, limits)
        finally:
            self._serving = False
            self._draining = None

    async def drain(self) -> None:
        """Begin no drive until `serve` is called again, and wait for the end of those that run."""
        if self._draining is None:
            self._draining = asyncio.get_running_loop().create_future()
        if self._tasks:
            await asyncio.shield(self._draining)

    async def status(self, run: RunKey) -> Status:
        """The scheduling status of the run."""
        job = self._jobs.get(run)
        return "idle" if job is None or job.state == "dropped" else job.state

    async def limited(self, tenant: str, runs: Sequence[str]) -> Mapping[str, LimitWait]:
        """Those of some runs that wait for the limit of their tenant in this process."""
        jobs = (self._jobs.get(RunKey(tenant, run)) for run in runs)
        held = {job.run.id: self._held(job) for job in jobs if job and job.state == "queued"}
        return {run: wait for run, wait in held.items() if wait is not None}

    def _held(self, job: RunJob) -> LimitWait | None:
        limit = self._queue.limit_of(job.run.tenant)
        if job.held_since is None or limit is None:
            return None
        waited = self._clock.now() - job.held_since
        return LimitWait(tenant_limit(limit), max(waited.total_seconds(), 0.0))

    async def _run(self, server: _Server, slots: int, limits: Mapping[str, int]) -> None:
        loop = asyncio.get_running_loop()
        self._server = server
        self._queue.open(slots, limits, self._clock.now())
        self._timers.start(loop)
        try:
            self._pump()
            await loop.create_future()
        finally:
            self._server = None
            self._timers.stop()

    def _soon(self, job: RunJob) -> None:
        if job.state == "driving":
            job.again = True
        elif job.state == "timer":
            self._queue.put(job, self._clock.now())
            self._pump()

    def _due(self, run: RunKey) -> None:
        self._soon(self._jobs[run])

    def _pump(self) -> None:
        """Start every run that may start now."""
        while self._server and self._draining is None and (job := self._queue.take()):
            self._timers.drop(job.run)
            task = self._server.start(job, self._held(job))
            self._tasks[job.run] = task
            task.add_done_callback(partial(self._ended, job))

    def _ended(self, job: RunJob, task: "asyncio.Task[datetime | None]") -> None:
        """After a drive: queue the run again, set its timer, or forget it."""
        del self._tasks[job.run]
        self._queue.done(job)
        job.state = "timer"
        wanted = None if task.cancelled() or task.exception() else task.result()
        at = _earliest(wanted, self._timers.drop(job.run))
        now = at and self._clock.now()
        if job.again or (at and now and at <= now):
            job.again = False
            self._queue.put(job, self._clock.now())
        elif at:
            self._timers.set(job.run, at)
        else:
            del self._jobs[job.run]
        if self._draining and not self._tasks and not self._draining.done():
            self._draining.set_result(None)
        self._pump()


def _earliest(a: datetime | None, b: datetime | None) -> datetime | None:
    return min(a, b) if a and b else a or b
