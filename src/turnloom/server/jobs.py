"""Work on many runs in the background: progress, result, cancel."""

import asyncio
import logging
import os
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from itertools import count
from typing import Any, Literal

import msgspec

from turnloom.errors import TurnloomError
from turnloom.kernel.digests import chain_digest
from turnloom.server.problems import Problem, Refusal, problem, problem_of

JobStatus = Literal["running", "done", "failed", "cancelled"]

# The most jobs of a tenant that run at once, and that are remembered.
AT_ONCE, KEPT = 4, 100

log = logging.getLogger("turnloom.server")


class Job(msgspec.Struct, frozen=True):
    """Work on many runs: `done` of `total` are worked on. A job is gone when its server stops."""

    id: str
    kind: str
    status: JobStatus
    total: int
    done: int
    by: str
    seconds: float
    problem: Problem | None = None


class RunningJob:
    """A job with its task and its results so far."""

    def __init__(self, id: str, kind: str, by: str, runs: Sequence[str], *, name: str) -> None:
        self.name = name
        self.results: list[Any] = []
        self._id = id
        self._kind = kind
        self._by = by
        self._runs = runs
        self._begun = asyncio.get_running_loop().time()
        self._seconds: float | None = None
        self._problem: Problem | None = None
        self._task: asyncio.Task[None] | None = None

    def begin(self, work: Callable[[str], Awaitable[Any]]) -> None:
        """Do the work on each run in turn."""
        self._task = asyncio.create_task(self._perform(work))

    async def _perform(self, work: Callable[[str], Awaitable[Any]]) -> None:
        try:
            for run in self._runs:
                self.results.append(await work(run))
        except TurnloomError as error:
            self._problem = problem_of(error)
        except Exception as error:
            log.error("job %s failed", self._id, exc_info=error)
            self._problem = problem(500, "The job failed.", TurnloomError.code)
        finally:
            self._seconds = asyncio.get_running_loop().time() - self._begun

    async def cancel(self) -> None:
        """Stop the work; what was done stays done."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})

    async def ended(self) -> None:
        """Wait for the end of the work."""
        if self._task is not None:
            await asyncio.wait({self._task})

    @property
    def is_running(self) -> bool:
        """Whether it has not ended."""
        return self._task is not None and not self._task.done()

    @property
    def status(self) -> JobStatus:
        """How it stands."""
        if self.is_running:
            return "running"
        if self._task is not None and self._task.cancelled():
            return "cancelled"
        return "failed" if self._problem is not None else "done"

    def shown(self) -> Job:
        """The job as clients see it."""
        now = asyncio.get_running_loop().time()
        return Job(
            self._id,
            self._kind,
            self.status,
            len(self._runs),
            done=len(self.results),
            by=self._by,
            seconds=round(now - self._begun if self._seconds is None else self._seconds, 3),
            problem=self._problem,
        )


class Jobs:
    """The jobs of a server, by tenant."""

    def __init__(self) -> None:
        self._jobs: dict[str, OrderedDict[str, RunningJob]] = {}
        self._numbers = count(1)

    def start(
        self,
        tenant: str,
        kind: str,
        by: str,
        runs: Sequence[str],
        *,
        work: Callable[[str], Awaitable[Any]],
        name: str = "",
    ) -> RunningJob:
        """Begin a job on runs, with the workflow of a name.

        Raises:
            Refusal: too many jobs of the tenant run already.
        """
        own = self._own(tenant)
        if sum(each.is_running for each in own.values()) >= AT_ONCE:
            message = f"{AT_ONCE} jobs are running. Wait for one, or cancel one."
            raise Refusal(429, message, "TURNLOOM-LIMIT", {"Retry-After": "5"})
        now = asyncio.get_running_loop().time()
        id = chain_digest(tenant, str(next(self._numbers)), str(os.getpid()), str(now))[:20]
        job = own[id] = RunningJob(id, kind, by, runs, name=name)
        for old in [name for name, each in own.items() if not each.is_running][:-KEPT]:
            del own[old]
        job.begin(work)
        return job

    def find(self, tenant: str, id: str) -> RunningJob:
        """A job of a tenant.

        Raises:
            Refusal: the tenant has no such job.
        """
        found = self._own(tenant).get(id)
        if found is None:
            raise Refusal(404, f"Unknown job {id!r}.", "TURNLOOM-UNKNOWN-JOB")
        return found

    def all(self, tenant: str) -> list[Job]:
        """The jobs of a tenant, the latest first."""
        return [each.shown() for each in reversed(self._own(tenant).values())]

    def _own(self, tenant: str) -> OrderedDict[str, RunningJob]:
        return self._jobs.setdefault(tenant, OrderedDict())

    async def stop(self) -> None:
        """Cancel all jobs."""
        for own in self._jobs.values():
            for job in own.values():
                await job.cancel()
