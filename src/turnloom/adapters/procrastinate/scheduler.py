"""Spread the drives of runs over any number of workers."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from turnloom.adapters.procrastinate import queries
from turnloom.adapters.procrastinate.database import JobDatabase
from turnloom.adapters.procrastinate.permits import SharedPermits
from turnloom.adapters.procrastinate.worker import JobWorker
from turnloom.errors import UsageError
from turnloom.log.spec import RunKey
from turnloom.runtime.ports import Drive, Migrator, Status
from turnloom.runtime.spec import LimitWait, tenant_limit


class ProcrastinateScheduler:
    """Queues drives as jobs of Procrastinate, in the database of the store. Every process with
    this scheduler can wake runs; those that `serve` drive them. The jobs of a worker that does not
    respond for `lease` seconds are taken over by the others. A worker looks at timers at least
    every `poll` seconds; at the queue, when something is woken or a drive ends. A run whose code no
    worker has for `stranded` seconds is listed as such."""

    drives_elsewhere = True

    def __init__(
        self,
        url: str,
        *,
        listen_url: str = "",
        lease: float = 30.0,
        timeout: float = 5.0,
        poll: float = 1.0,
        stranded: float = 60.0,
    ) -> None:
        self._database = JobDatabase(url, timeout, listen_url)
        self._lease = lease
        self._poll = poll
        self._stranded = stranded
        self._worker: JobWorker | None = None
        self.permits = SharedPermits(self._database, lease)
        self.migrator: Migrator = self._database

    async def wake(self, run: RunKey, at: datetime | None = None) -> None:
        """Drive the run soon, or at an instant: a run has one timer. Idempotent.

        Raises:
            StoreUnavailable: the server fails, or does not answer in time.
        """
        if at is None:
            await self._database.call(queries.WAKE, tenant=run.tenant, run=run.id)
        else:
            await self._database.call(queries.WAKE_AT, tenant=run.tenant, run=run.id, due=at)
        if self._worker is not None:
            self._worker.ring()

    async def cancel(self, run: RunKey) -> None:
        """Drop what is queued for the run, and ask its worker to interrupt its drive.

        Raises:
            StoreUnavailable: the server fails, or does not answer in time.
        """
        await self._database.call(queries.CANCEL, tenant=run.tenant, run=run.id)

    async def serve(self, drive: Drive, *, slots: int, limits: Mapping[str, int]) -> None:
        """Drive woken runs of all processes, at most `slots` at once, until cancelled. `limits`
        hold for all workers together: those of the worker that started last.

        On cancellation, it interrupts the running drives, waits for them, and gives them back.

        Raises:
            UsageError: `serve` is running already.
        """
        if self._worker is not None:
            raise UsageError("This scheduler is running already. Call `serve` once at a time.")
        self._worker = JobWorker(self._database, drive, slots, self._lease, poll=self._poll)
        try:
            await self._database.call(queries.LIMITS, tenants=[*limits], most=[*limits.values()])
            await self._worker.run()
        finally:
            self._worker = None

    async def drain(self) -> None:
        """Take nothing new, and wait for the end of the drives in this process."""
        if self._worker is not None:
            await self._worker.drain()

    async def status(self, run: RunKey) -> Status:
        """The scheduling status of the run.

        Raises:
            StoreUnavailable: the server fails, or does not answer in time.
        """
        (row,) = await self._database.call(queries.STATUS, tenant=run.tenant, run=run.id)
        if row["status"] is None:
            return "timer" if row["timer"] else "idle"
        return "driving" if row["status"] == "doing" else "queued"

    async def limited(self, tenant: str, runs: Sequence[str]) -> Mapping[str, LimitWait]:
        """Those of some runs that wait for the limit of their tenant now.

        Raises:
            StoreUnavailable: the server fails, or does not answer in time.
        """
        rows = await self._database.call(queries.LIMITED, tenant=tenant, runs=[*runs])
        return {row["run"]: LimitWait(tenant_limit(row["most"]), row["seconds"]) for row in rows}

    async def stranded(self, tenant: str) -> Mapping[str, str]:
        """The runs of a tenant that workers refused, and that none with their code took within a
        minute; each with the code that it needs.

        Raises:
            StoreUnavailable: the server fails, or does not answer in time.
        """
        rows = await self._database.call(queries.STRANDED, tenant=tenant, seconds=self._stranded)
        return {row["run"]: row["needs"] for row in rows}

    async def aclose(self) -> None:
        """Close the connections. Idempotent."""
        await self.permits.aclose()
        await self._database.aclose()
