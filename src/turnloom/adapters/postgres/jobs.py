"""Jobs on runs, in a PostgreSQL store."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from turnloom.adapters.postgres import job_queries as queries
from turnloom.adapters.postgres.connections import Session
from turnloom.adapters.postgres.database import Database
from turnloom.board.logic.rows import instant_of, microseconds
from turnloom.jobs.spec import RUNNING, JobResult, JobStatus, StoredJob


class PostgresJobs:
    """Jobs on runs, for any number of machines. Results are removed with their runs."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, tenant: str, job: StoredJob) -> None:
        """Store a job, unless there is one of its id.

        Raises:
            StoreUnavailable: nothing was stored.
        """
        values = (
            *(tenant, job.id, job.kind, job.by, job.total, microseconds(job.begun)),
            *(microseconds(job.alive), job.name, job.done, job.status, job.problem),
        )
        await self._database.write(queries.ADD_JOB, *values)

    async def lookup(self, tenant: str, id: str) -> StoredJob | None:
        """The job of this id.

        Raises:
            StoreUnavailable: the server fails or does not answer in time.
        """
        for row in await self._database.rows(queries.JOB_OF, tenant, id):
            return _job(row)
        return None

    async def list(
        self, tenant: str, limit: int, *, before: str | None = None
    ) -> Sequence[StoredJob]:
        """Jobs of a tenant, latest first.

        Raises:
            StoreUnavailable: the server fails or does not answer in time.
        """
        values = {"tenant": tenant, "limit": limit, "before": before}
        return [_job(row) for row in await self._database.rows(queries.JOBS_OF, **values)]

    async def advance(
        self, tenant: str, id: str, at: datetime, result: JobResult | None = None
    ) -> StoredJob | None:
        """Note that a job is worked on, with a further result.

        Raises:
            StoreUnavailable: nothing was changed.
        """
        number = result.number if result else 0
        values = (microseconds(at), number, tenant, id)

        async def advance(session: Session) -> StoredJob | None:
            row = await (await session.execute(queries.ADVANCE_JOB, values)).fetchone()
            if row is None:
                return None
            if result is not None and row[-2] == RUNNING:
                await session.execute(queries.ADD_RESULT, (tenant, id, *result))
            return _job(row)

        return await self._database.transact(advance)

    async def end(
        self, tenant: str, id: str, status: JobStatus, at: datetime, problem: str = ""
    ) -> StoredJob | None:
        """End a job; the first end stands.

        Raises:
            StoreUnavailable: nothing was changed.
        """
        await self._database.write(queries.END_JOB, status, problem, microseconds(at), tenant, id)
        return await self.lookup(tenant, id)

    async def results(self, tenant: str, id: str) -> Sequence[JobResult]:
        """The results of a job, in order.

        Raises:
            StoreUnavailable: the server fails or does not answer in time.
        """
        rows = await self._database.rows(queries.RESULTS_OF, tenant, id)
        return [JobResult(number, run, bytes(result)) for number, run, result in rows]

    async def drop(self, tenant: str, id: str) -> None:
        """Remove a job and its results.

        Raises:
            StoreUnavailable: nothing was removed.
        """
        await self._database.write(queries.DROP_JOB, tenant, id)

    async def erase(self, tenant: str, user: str, *, dry_run: bool = False) -> int:
        """Remove all jobs of a person; returns how many there were.

        Raises:
            StoreUnavailable: nothing was removed.
        """
        if dry_run:
            ((count,),) = await self._database.rows(queries.COUNT_JOBS, tenant, user)
            return count
        return len(await self._database.write(queries.ERASE_JOBS, tenant, user))


def _job(row: Sequence[Any]) -> StoredJob:
    id, kind, by, total, begun, alive, *rest = row
    return StoredJob(id, kind, by, total, instant_of(begun), instant_of(alive), *rest)
