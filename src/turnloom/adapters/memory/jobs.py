"""Jobs on runs, in memory."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import datetime

import msgspec

from turnloom.jobs.spec import RUNNING, JobResult, JobStatus, StoredJob
from turnloom.log.spec import RunKey


class MemoryJobs:
    """Jobs by tenant, the oldest first."""

    def __init__(self, check_open: Callable[[], None]) -> None:
        self._check_open = check_open
        self._jobs: dict[str, dict[str, StoredJob]] = defaultdict(dict)
        self._results: dict[tuple[str, str], dict[int, JobResult]] = defaultdict(dict)

    async def add(self, tenant: str, job: StoredJob) -> None:
        """Store a job, unless there is one of its id."""
        self._check_open()
        self._jobs[tenant].setdefault(job.id, job)

    async def lookup(self, tenant: str, id: str) -> StoredJob | None:
        """The job of this id."""
        self._check_open()
        return self._jobs[tenant].get(id)

    async def list(
        self, tenant: str, limit: int, *, before: str | None = None
    ) -> Sequence[StoredJob]:
        """Jobs of a tenant, latest first."""
        self._check_open()
        own = [*self._jobs[tenant].values()]
        if before is not None:
            ids = [*self._jobs[tenant]]
            own = own[: ids.index(before)] if before in ids else []
        return own[::-1][:limit]

    async def advance(
        self, tenant: str, id: str, at: datetime, result: JobResult | None = None
    ) -> StoredJob | None:
        """Note that a job is worked on, with a further result."""
        job = await self.lookup(tenant, id)
        if job is None or job.status != RUNNING:
            return job
        if result is not None:
            self._results[tenant, id].setdefault(result.number, result)
        done = max(job.done, result.number if result else 0)
        return self._put(tenant, job, alive=max(job.alive, at), done=done)

    async def end(
        self, tenant: str, id: str, status: JobStatus, at: datetime, problem: str = ""
    ) -> StoredJob | None:
        """End a job; the first end stands."""
        job = await self.lookup(tenant, id)
        if job is None or job.status != RUNNING:
            return job
        alive = max(job.alive, at)
        return self._put(tenant, job, status=status, alive=alive, problem=problem)

    def _put(self, tenant: str, job: StoredJob, **changes: object) -> StoredJob:
        made = self._jobs[tenant][job.id] = msgspec.structs.replace(job, **changes)
        return made

    async def results(self, tenant: str, id: str) -> Sequence[JobResult]:
        """The results of a job, in order."""
        self._check_open()
        return [each for _, each in sorted(self._results[tenant, id].items())]

    async def drop(self, tenant: str, id: str) -> None:
        """Remove a job and its results."""
        self._check_open()
        self._jobs[tenant].pop(id, None)
        self._results.pop((tenant, id), None)

    async def erase(self, tenant: str, user: str, *, dry_run: bool = False) -> int:
        """Remove all jobs of a person; returns how many there were."""
        self._check_open()
        own = [each.id for each in self._jobs[tenant].values() if each.by == user]
        for id in () if dry_run else own:
            await self.drop(tenant, id)
        return len(own)

    def remove(self, run: RunKey) -> None:
        """Remove what jobs say about a run that is removed."""
        for (tenant, _), results in self._results.items():
            for number in [each.number for each in results.values() if each.run == run.id]:
                if tenant == run.tenant:
                    del results[number]
