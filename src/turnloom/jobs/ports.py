"""Port of jobs."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from turnloom.jobs.spec import JobResult, JobStatus, StoredJob


class JobStore(Protocol):
    """Jobs on runs, and their results, which are removed with their runs. A store may have them, as
    `jobs`."""

    async def add(self, tenant: str, job: StoredJob) -> None:
        """Keep a job; one of this id that the tenant has is not changed.

        Raises:
            StoreUnavailable: nothing was kept.
        """
        ...

    async def lookup(self, tenant: str, id: str) -> StoredJob | None:
        """The job of this id."""
        ...

    async def list(
        self, tenant: str, limit: int, *, before: str | None = None
    ) -> Sequence[StoredJob]:
        """At most `limit` jobs of a tenant, the latest first: of all, or of those that began before
        the one of an id."""
        ...

    async def advance(
        self, tenant: str, id: str, at: datetime, result: JobResult | None = None
    ) -> StoredJob | None:
        """Note that a job is worked on at an instant, and keep a further result, unless it has
        ended; returns the job as it stands then.

        Raises:
            StoreUnavailable: nothing was changed.
        """
        ...

    async def end(
        self, tenant: str, id: str, status: JobStatus, at: datetime, problem: str = ""
    ) -> StoredJob | None:
        """End a job, unless it has ended; returns the job as it stands then.

        Raises:
            StoreUnavailable: nothing was changed.
        """
        ...

    async def results(self, tenant: str, id: str) -> Sequence[JobResult]:
        """The results of a job, in order; without those of runs that were removed."""
        ...

    async def drop(self, tenant: str, id: str) -> None:
        """Remove a job and its results.

        Raises:
            StoreUnavailable: nothing was removed.
        """
        ...

    async def erase(self, tenant: str, user: str, *, dry_run: bool = False) -> int:
        """Remove all jobs of a person of a tenant; returns how many there were. A dry run only
        counts them.

        Raises:
            StoreUnavailable: nothing was removed.
        """
        ...
