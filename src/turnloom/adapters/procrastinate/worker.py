"""Take jobs of Procrastinate and drive their runs."""

import asyncio
import hashlib
import logging
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any, LiteralString, NamedTuple

import anyio

from turnloom.adapters.procrastinate import queries
from turnloom.adapters.procrastinate.database import JobDatabase
from turnloom.errors import CodeMissing, StoreUnavailable
from turnloom.log.spec import RunKey
from turnloom.runtime.ports import Drive
from turnloom.runtime.spec import LimitWait, tenant_limit

# Heartbeats per lease, and the leases after which a worker without one is forgotten.
BEATS, FORGOTTEN = 5, 10
# Seconds between attempts while the store is unavailable.
PAUSE = 0.2
# Seconds that an ending worker takes to give its jobs back.
GRACE = 5.0

_log = logging.getLogger("turnloom.procrastinate")


class TakenJob(NamedTuple):
    """A job that this worker has, and its run."""

    id: int
    run: RunKey


class JobWorker:
    """One worker: a heartbeat, a look at timers, and a task for every drive."""

    def __init__(
        self, database: JobDatabase, drive: Drive, slots: int, lease: float, *, poll: float
    ) -> None:
        self._database = database
        self._drive = drive
        self._lease = lease
        self._poll = poll
        self._free = asyncio.Semaphore(slots)
        self._id = 0
        self._driving: dict[int, asyncio.Task[datetime | None]] = {}
        self._fetching = asyncio.Lock()
        self._lacking: set[str] = set()
        self._bell = asyncio.Event()
        self._tick = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._taking: asyncio.Task[None] | None = None
        self._is_draining = False

    async def run(self) -> None:
        """Take jobs until cancelled; then interrupt the drives, and give their jobs back."""
        await self._register()
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._listen())
                group.create_task(self._beat())
                group.create_task(self._look())
                self._taking = group.create_task(self._take(group))
                if self._is_draining:
                    self._taking.cancel()
        finally:
            await self._leave()

    def ring(self) -> None:
        """Look at the queue and the timers now."""
        self._bell.set()
        self._tick.set()

    async def drain(self) -> None:
        """Take no more jobs, and wait for the end of those that are driven."""
        self._is_draining = True
        if self._taking is not None:
            self._taking.cancel()
        await self._idle.wait()

    # ------------------------------------------------------------------ jobs

    async def _take(self, group: asyncio.TaskGroup) -> None:
        while True:
            await self._free.acquire()
            slots = 1
            while not self._free.locked():
                await self._free.acquire()
                slots += 1
            self._bell.clear()
            jobs = await self._fetch(slots)
            for job in jobs:
                group.create_task(self._do(job))
            for _ in range(slots - len(jobs)):
                self._free.release()
            if len(jobs) == slots:
                continue
            try:
                async with asyncio.timeout(self._poll):
                    await self._bell.wait()
            except TimeoutError:
                continue

    async def _fetch(self, count: int) -> list[TakenJob]:
        """The next jobs; none if there are none, or the store is unavailable."""
        async with self._fetching:
            try:
                found = await self._database.call(
                    queries.FETCH, worker=self._id, lacking=[*self._lacking], count=count
                )
            except StoreUnavailable as error:
                _log.warning("The queue cannot be read; trying again: %s", error)
                return []
            jobs: list[TakenJob] = []
            for row in found:
                job = TakenJob(row["job"], RunKey(row["tenant"], row["run"]))
                held = LimitWait(tenant_limit(row["most"]), row["held"]) if row["most"] else None
                self._driving[job.id] = asyncio.ensure_future(self._drive_to_end(job.run, held))
                jobs.append(job)
            if jobs:
                self._idle.clear()
            return jobs

    async def _drive_to_end(self, run: RunKey, held: LimitWait | None) -> datetime | None:
        return await self._drive(run, held)

    async def _do(self, job: TakenJob) -> None:
        """Drive the run of a job, and say what became of the job."""
        driving = self._driving[job.id]
        is_over = False
        try:
            await asyncio.wait({driving})
            is_over = True
        finally:
            if not is_over:
                driving.cancel()
            with anyio.CancelScope(shield=True):
                await asyncio.wait({driving})
                await self._end(job, driving, is_stopping=not is_over)
            # A server that crashed may have forgotten the job, and given its id again.
            if self._driving.get(job.id) is driving:
                del self._driving[job.id]
            self._free.release()
            self._bell.set()
            if not self._driving:
                self._idle.set()

    async def _end(
        self, job: TakenJob, driving: "asyncio.Task[datetime | None]", *, is_stopping: bool
    ) -> None:
        due: datetime | None = None
        if not driving.cancelled():
            error = driving.exception()
            if isinstance(error, CodeMissing):
                await self._refuse(job, error)
                return
            if error is not None:
                _log.error("Driving run %r failed.", job.run.id, exc_info=error)
            else:
                due = driving.result()
        elif is_stopping:
            await self._persist(
                queries.GIVE_BACK, job=job.id, worker=self._id, needs=None, queue=None
            )
            return
        await self._persist(
            queries.FINISH,
            job=job.id,
            worker=self._id,
            tenant=job.run.tenant,
            run=job.run.id,
            due=due,
        )

    async def _refuse(self, job: TakenJob, error: CodeMissing) -> None:
        """Leave a run to workers that have its code; say so once."""
        queue = f"turnloom.{hashlib.sha256(error.needs.encode()).hexdigest()[:32]}"
        if queue not in self._lacking:
            self._lacking.add(queue)
            _log.warning("Runs of %s are left to other workers: %s", error.needs, error)
        async with self._fetching:  # else a fetch that does not know yet may take it again
            await self._persist(
                queries.GIVE_BACK, job=job.id, worker=self._id, needs=error.needs, queue=queue
            )

    async def _persist(self, query: LiteralString, **arguments: Any) -> None:
        """Say what became of a job, however long the store is unavailable: it is ours until then.
        A worker that ends leaves it to the others, who take it over."""
        deadline = asyncio.get_running_loop().time() + GRACE
        while True:
            try:
                await self._database.call(query, **arguments)
                return
            except StoreUnavailable as error:
                _log.warning("The end of a drive is not stored yet: %s", error)
                task = asyncio.current_task()
                is_ending = task is not None and task.cancelling() > 0
                if is_ending and asyncio.get_running_loop().time() > deadline:
                    return
            await asyncio.sleep(PAUSE)

    # ------------------------------------------------------------------ beside them

    async def _register(self) -> None:
        self._id = await self._again(self._database.register)

    async def _leave(self) -> None:
        try:
            with anyio.move_on_after(GRACE, shield=True):
                await self._database.unregister(self._id)
        except StoreUnavailable as error:
            _log.warning("Other workers take over what is left: %s", error)

    async def _again(self, act: Callable[[], Awaitable[int]]) -> int:
        while True:
            try:
                return await act()
            except StoreUnavailable as error:
                _log.warning("The worker cannot start yet: %s", error)
                await asyncio.sleep(PAUSE)

    async def _listen(self) -> None:
        """Look at the queue when a job is added, and interrupt drives that are cancelled."""
        while True:
            try:
                await self._database.listen(self.ring, self._hear)
            except StoreUnavailable as error:
                _log.warning("The queue is polled until the connection is back: %s", error)
            await asyncio.sleep(PAUSE)

    def _hear(self, kind: str, job: int) -> None:
        if kind == "abort_job_requested":
            self._interrupt(job)
        else:
            self._bell.set()

    def _interrupt(self, job: int) -> None:
        driving = self._driving.get(job)
        if driving is not None:
            driving.cancel()

    async def _look(self) -> None:
        """Wake runs whose timers are due, and interrupt drives whose notification was missed."""
        while True:
            seconds = self._poll
            self._tick.clear()
            try:
                seconds = await self._fire()
                for row in await self._database.call(queries.HELD, worker=self._id):
                    if row["abort_requested"]:
                        self._interrupt(row["id"])
            except StoreUnavailable as error:
                _log.warning("Timers are looked at again soon: %s", error)
            try:
                async with asyncio.timeout(min(max(seconds, 0.001), self._poll)):
                    await self._tick.wait()
            except TimeoutError:
                continue

    async def _fire(self) -> float:
        """Wake runs whose timers are due; the seconds until the next timer."""
        while True:
            (row,) = await self._database.call(queries.FIRE)
            if row["fired"]:
                self._bell.set()
            elif row["next"] is None:
                return self._poll
            else:
                # A due timer of a tenant that another worker looks at.
                return row["next"] if row["next"] > 0 else self._poll / 10

    async def _beat(self) -> None:
        """Show that this worker is alive, and take over the jobs of those that are not."""
        was_alive = False
        while True:
            try:
                await self._live()
                if was_alive:  # after an outage, the others get the time to show themselves too
                    await self._take_over()
                was_alive = True
            except StoreUnavailable as error:
                was_alive = False
                _log.warning("The heartbeat is late: %s", error)
            await asyncio.sleep(self._lease / BEATS)

    async def _live(self) -> None:
        found = await self._database.call(queries.BEAT, worker=self._id)
        if not found:  # it was stopped for so long that the others forgot it
            self._id = await self._database.register()
        async with self._fetching:
            held = await self._database.call(queries.HELD, worker=self._id)
            lost = [row["id"] for row in held if row["id"] not in self._driving]
        for job in lost:  # fetched over a connection that was cut before the answer came
            await self._database.call(
                queries.GIVE_BACK, job=job, worker=self._id, needs=None, queue=None
            )

    async def _take_over(self) -> None:
        (row,) = await self._database.call(queries.TAKE_OVER, lease=self._lease)
        if row["count"]:
            _log.warning("Took over %d drives of workers that do not respond.", row["count"])
            self._bell.set()
        await self._database.call(queries.SWEEP)
        await self._database.call(queries.PRUNE, seconds=FORGOTTEN * self._lease)
