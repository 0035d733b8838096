"""Runs that wait for a slot: in turn among tenants, in order within one."""

from collections import deque
from collections.abc import Mapping
from typing import Literal

from turnloom.log.spec import RunKey
from turnloom.runtime.ports import EVERY_TENANT

State = Literal["timer", "queued", "driving", "dropped"]


class Job:
    """What the scheduler knows of one run that is not idle."""

    __slots__ = ("again", "run", "state")

    def __init__(self, run: RunKey) -> None:
        self.run = run
        self.state: State = "timer"
        self.again = False


class _Tenant:
    __slots__ = ("driving", "listed", "waiting")

    def __init__(self) -> None:
        self.waiting: deque[Job] = deque()
        self.driving = 0
        self.listed = False


class Queue:
    """Gives the next run to drive while there are slots and its tenant is below its limit."""

    def __init__(self) -> None:
        self._tenants: dict[str, _Tenant] = {}
        self._turns: deque[str] = deque()
        self._free = 0
        self._limits: Mapping[str, int] = {}

    def open(self, slots: int, limits: Mapping[str, int]) -> None:
        """Let at most `slots` runs be taken at once, and `limits` per tenant."""
        self._free = slots
        self._limits = limits
        for name, tenant in self._tenants.items():
            self._list(name, tenant)

    def put(self, job: Job) -> None:
        """Let a run wait for its turn."""
        job.state = "queued"
        name = job.run.tenant
        tenant = self._tenants.setdefault(name, _Tenant())
        tenant.waiting.append(job)
        self._list(name, tenant)

    def take(self) -> Job | None:
        """The next run whose turn it is, now driving; None when there is none or no slot."""
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

    def done(self, job: Job) -> None:
        """Give the slot of a run back."""
        name = job.run.tenant
        tenant = self._tenants[name]
        tenant.driving -= 1
        self._free += 1
        self._list(name, tenant)
        self._forget(name, tenant)

    def _below(self, name: str, tenant: _Tenant) -> bool:
        limit = self._limits.get(name, self._limits.get(EVERY_TENANT))
        return limit is None or tenant.driving < limit

    def _list(self, name: str, tenant: _Tenant) -> None:
        """Put the tenant at the end of the turns, once, if it has something that may be driven."""
        if not tenant.listed and tenant.waiting and self._below(name, tenant):
            tenant.listed = True
            self._turns.append(name)

    def _forget(self, name: str, tenant: _Tenant) -> None:
        if not tenant.waiting and not tenant.driving and not tenant.listed:
            del self._tenants[name]


def _first(waiting: deque[Job]) -> Job | None:
    """The first run that still waits; those that were dropped meanwhile are skipped."""
    while waiting:
        job = waiting.popleft()
        if job.state == "queued":
            return job
    return None
