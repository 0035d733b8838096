"""Work on many runs in the background: progress, result, cancel."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any

import anyio
import msgspec

from turnloom.app import Loom
from turnloom.errors import TurnloomError
from turnloom.jobs.spec import RUNNING, JobResult, JobStatus, StoredJob
from turnloom.server.problems import Problem, Refusal, problem, problem_of

# The most jobs of a tenant that run at once, and that are kept.
AT_ONCE, KEPT = 4, 100

# Seconds between two signs of life of a job, and after which a silent one was interrupted.
BEAT, SILENCE = 5.0, timedelta(seconds=20)

# Seconds that a stopping server has to say that its jobs are interrupted.
GRACE = 2.0

log = logging.getLogger("turnloom.server")


class Job(msgspec.Struct, frozen=True):
    """Work on many runs: `done` of `total` are worked on. A job that was running when its server
    stopped is `interrupted`; its results so far are kept."""

    id: str
    kind: str
    status: JobStatus
    total: int
    done: int
    by: str
    seconds: float
    problem: Problem | None = None


class Jobs:
    """The jobs of the tenants of an app; this server works on those that were started here."""

    def __init__(self, app: Loom) -> None:
        self._serving = app.serving
        self._tasks: dict[tuple[str, str], asyncio.Task[None]] = {}

    async def start(
        self,
        tenant: str,
        kind: str,
        by: str,
        runs: Sequence[str],
        *,
        work: Callable[[str], Awaitable[Any]],
        name: str = "",
    ) -> Job:
        """Begin a job on runs, with the workflow of a name.

        Raises:
            Refusal: too many jobs of the tenant run already.
            UsageError: the store has no `jobs`.
        """
        store, now = self._serving.jobs, self._serving.now()
        known = await store.list(tenant, 2 * KEPT)
        if sum(self._status(each) == RUNNING for each in known) >= AT_ONCE:
            message = f"{AT_ONCE} jobs are running. Wait for one, or cancel one."
            raise Refusal(429, message, "TURNLOOM-LIMIT", {"Retry-After": "5"})
        for old in known[KEPT - 1 :]:
            if self._status(old) != RUNNING:
                await store.drop(tenant, old.id)
        job = StoredJob(
            self._serving.new_id(), kind, by, len(runs), begun=now, alive=now, name=name
        )
        await store.add(tenant, job)
        task = asyncio.create_task(self._perform(tenant, job.id, runs, work))
        self._tasks[tenant, job.id] = task
        task.add_done_callback(lambda _: self._tasks.pop((tenant, job.id), None))
        return self._shown(job)

    async def _perform(
        self, tenant: str, id: str, runs: Sequence[str], work: Callable[[str], Awaitable[Any]]
    ) -> None:
        """Do the work on each run in turn, until the job is ended elsewhere."""
        store, now = self._serving.jobs, self._serving.now
        beating = asyncio.create_task(self._beat(tenant, id))
        status, found = "done", ""
        try:
            for number, run in enumerate(runs, 1):
                made = JobResult(number, run, msgspec.json.encode(await work(run)))
                job = await store.advance(tenant, id, now(), made)
                if job is None or job.status != RUNNING:
                    return
        except asyncio.CancelledError:
            status = "interrupted"
            raise
        except TurnloomError as error:
            status, found = "failed", msgspec.json.encode(problem_of(error)).decode()
        except Exception as error:
            log.error("job %s failed", id, exc_info=error)
            said = problem(500, "The job failed.", TurnloomError.code)
            status, found = "failed", msgspec.json.encode(said).decode()
        finally:
            beating.cancel()
            with anyio.move_on_after(GRACE, shield=True), suppress(TurnloomError):
                await store.end(tenant, id, status, now(), problem=found)

    async def _beat(self, tenant: str, id: str) -> None:
        """Give signs of life; stop the work on a job that was ended elsewhere."""
        while True:
            await asyncio.sleep(BEAT)
            with suppress(TurnloomError):
                job = await self._serving.jobs.advance(tenant, id, self._serving.now())
                if job is None or job.status != RUNNING:
                    self._cancel(tenant, id)

    def _cancel(self, tenant: str, id: str) -> "asyncio.Task[None] | None":
        task = self._tasks.get((tenant, id))
        if task is not None:
            task.cancel()
        return task

    async def find(self, tenant: str, id: str) -> Job:
        """A job of a tenant.

        Raises:
            Refusal: the tenant has no such job.
        """
        return self._shown(self._known(await self._serving.jobs.lookup(tenant, id), id))

    async def results(self, tenant: str, id: str) -> tuple[StoredJob, list[msgspec.Raw]]:
        """A job of a tenant, and its results so far, as JSON.

        Raises:
            Refusal: the tenant has no such job.
        """
        job = self._known(await self._serving.jobs.lookup(tenant, id), id)
        found = await self._serving.jobs.results(tenant, id)
        return job, [msgspec.Raw(each.result) for each in found]

    async def page(self, tenant: str, limit: int, before: str | None = None) -> list[Job]:
        """At most `limit` jobs of a tenant, the latest first."""
        found = await self._serving.jobs.list(tenant, limit, before=before)
        return [self._shown(each) for each in found]

    async def cancel(self, tenant: str, id: str) -> Job:
        """Stop the work on a job; what was done stays done.

        Raises:
            Refusal: the tenant has no such job.
        """
        now = self._serving.now()
        job = self._known(await self._serving.jobs.end(tenant, id, "cancelled", now), id)
        if (task := self._cancel(tenant, id)) is not None:
            await asyncio.wait({task})
        return self._shown(job)

    async def ended(self, tenant: str, id: str) -> None:
        """Wait until this server does not work on a job any more."""
        if (task := self._tasks.get((tenant, id))) is not None:
            await asyncio.wait({task})

    async def stop(self) -> None:
        """Interrupt all jobs of this server."""
        tasks = [*self._tasks.values()]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def _known(self, job: StoredJob | None, id: str) -> StoredJob:
        if job is None:
            raise Refusal(404, f"Unknown job {id!r}.", "TURNLOOM-UNKNOWN-JOB")
        return job

    def _status(self, job: StoredJob) -> JobStatus:
        is_silent = self._serving.now() - job.alive > SILENCE
        return "interrupted" if job.status == RUNNING and is_silent else job.status

    def _shown(self, job: StoredJob) -> Job:
        """The job as clients see it."""
        status = self._status(job)
        until = self._serving.now() if status == RUNNING else job.alive
        return Job(
            job.id,
            job.kind,
            status,
            job.total,
            done=job.done,
            by=job.by,
            seconds=round(max((until - job.begun).total_seconds(), 0.0), 3),
            problem=msgspec.json.decode(job.problem, type=Problem) if job.problem else None,
        )
