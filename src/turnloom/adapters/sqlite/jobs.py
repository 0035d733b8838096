"""Jobs on runs, in a SQLite file."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from turnloom.adapters.sqlite import job_queries as queries
from turnloom.adapters.sqlite.beside import Change
from turnloom.adapters.sqlite.database import DatabaseFile
from turnloom.adapters.sqlite.writer import Writer
from turnloom.board.logic.rows import instant_of, microseconds
from turnloom.jobs.spec import JobResult, JobStatus, StoredJob


class SqliteJobs:
    """Jobs on runs, for any number of processes. Results are removed with their runs."""

    def __init__(self, database: DatabaseFile) -> None:
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
        await self._write(lambda writer: writer.execute(queries.ADD_JOB, values))

    async def lookup(self, tenant: str, id: str) -> StoredJob | None:
        """The job of this id.

        Raises:
            StoreUnavailable: the file cannot be read.
        """
        await self._database.ready()
        for row in self._database.rows(queries.JOB_OF, tenant, id):
            return _job(row)
        return None

    async def list(
        self, tenant: str, limit: int, *, before: str | None = None
    ) -> Sequence[StoredJob]:
        """Jobs of a tenant, latest first.

        Raises:
            StoreUnavailable: the file cannot be read.
        """
        await self._database.ready()
        values = {"tenant": tenant, "limit": limit, "before": before}
        return [_job(row) for row in self._database.named_rows(queries.JOBS_OF, values)]

    async def advance(
        self, tenant: str, id: str, at: datetime, result: JobResult | None = None
    ) -> StoredJob | None:
        """Note that a job is worked on, with a further result.

        Raises:
            StoreUnavailable: nothing was changed.
        """
        number = result.number if result else 0
        values = (microseconds(at), number, tenant, id)

        def advance(writer: Writer) -> StoredJob | None:
            changed = writer.execute(queries.ADVANCE_JOB, values).rowcount
            if changed and result is not None:
                writer.execute(queries.ADD_RESULT, (tenant, id, *result))
            return _found(writer, tenant, id)

        return await self._write(advance)

    async def end(
        self, tenant: str, id: str, status: JobStatus, at: datetime, problem: str = ""
    ) -> StoredJob | None:
        """End a job; the first end stands.

        Raises:
            StoreUnavailable: nothing was changed.
        """
        values = (status, problem, microseconds(at), tenant, id)

        def end(writer: Writer) -> StoredJob | None:
            writer.execute(queries.END_JOB, values)
            return _found(writer, tenant, id)

        return await self._write(end)

    async def results(self, tenant: str, id: str) -> Sequence[JobResult]:
        """The results of a job, in order.

        Raises:
            StoreUnavailable: the file cannot be read.
        """
        await self._database.ready()
        return [JobResult(*row) for row in self._database.rows(queries.RESULTS_OF, tenant, id)]

    async def drop(self, tenant: str, id: str) -> None:
        """Remove a job and its results.

        Raises:
            StoreUnavailable: nothing was removed.
        """

        def drop(writer: Writer) -> None:
            for query in queries.DROP_JOB:
                writer.execute(query, (tenant, id))

        await self._write(drop)

    async def erase(self, tenant: str, user: str, *, dry_run: bool = False) -> int:
        """Remove all jobs of a person; returns how many there were.

        Raises:
            StoreUnavailable: nothing was removed.
        """
        if dry_run:
            await self._database.ready()
            return self._database.rows(queries.COUNT_JOBS, tenant, user)[0][0]

        def erase(writer: Writer) -> int:
            writer.execute(queries.ERASE_RESULTS, (tenant, user))
            return writer.execute(queries.ERASE_JOBS, (tenant, user)).rowcount

        return await self._write(erase)

    async def _write(self, change: Callable[[Writer], Any]) -> Any:
        return await self._database.write(Change(change))


def _found(writer: Writer, tenant: str, id: str) -> StoredJob | None:
    row = writer.execute(queries.JOB_OF, (tenant, id)).fetchone()
    return None if row is None else _job(row)


def _job(row: Sequence[Any]) -> StoredJob:
    id, kind, by, total, begun, alive, *rest = row
    return StoredJob(id, kind, by, total, instant_of(begun), instant_of(alive), *rest)
