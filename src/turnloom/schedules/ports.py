"""Ports of schedules: what must be stored, and the calendar."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from turnloom.log.spec import RunKey
from turnloom.schedules.spec import Firing, PlannedStart


class ScheduleStore(Protocol):
    """Firings of schedules, and planned starts. A store may have them, as `schedules`."""

    async def firings(self, tenant: str) -> Mapping[str, Firing]:
        """The last firing of each schedule of a tenant, by the schedule's name."""
        ...

    async def begin(self, tenant: str, schedule: str, at: datetime) -> Firing:
        """The last firing of a schedule; if there is none, count from `at` on."""
        ...

    async def record(self, tenant: str, schedule: str, firing: Firing) -> None:
        """Keep the last firing of a schedule; an earlier one changes nothing.

        Raises:
            StoreUnavailable: nothing was kept.
        """
        ...

    async def plan(self, tenant: str, start: PlannedStart) -> bool:
        """Keep a planned start; returns False if the tenant has one of this run.

        Raises:
            StoreUnavailable: nothing was kept.
        """
        ...

    async def planned(self, tenant: str, limit: int) -> Sequence[PlannedStart]:
        """At most `limit` planned starts of a tenant, the next one first; also those that could not
        start."""
        ...

    async def due(self, now: datetime, limit: int) -> Sequence[PlannedStart]:
        """At most `limit` starts of all tenants that are due, the oldest first."""
        ...

    async def upcoming(self) -> datetime | None:
        """The instant of the next planned start of any tenant."""
        ...

    async def settle(self, run: RunKey, error: str = "") -> bool:
        """Remove a planned start that was made or is cancelled; with an error, keep it as failed.
        Returns whether it was there."""
        ...

    async def erase(self, tenant: str, user: str, *, dry_run: bool = False) -> int:
        """Remove all planned starts of a person of a tenant; returns how many there were. A dry run
        only counts them.

        Raises:
            StoreUnavailable: nothing was removed.
        """
        ...


class Calendar(Protocol):
    """Reads cron expressions in a time zone."""

    def problem(self, cron: str, timezone: str) -> tuple[str, str] | None:
        """What is wrong, as the name of the field and a sentence; None if nothing is."""
        ...

    def firings(self, cron: str, timezone: str, after: datetime) -> Iterator[datetime]:
        """The instants after an instant at which the expression fires, ascending, in UTC."""
        ...
