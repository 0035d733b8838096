"""Runs that start by themselves."""

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from turnloom.app.access import PROGRAM, Access
from turnloom.kernel.arguments import as_count, as_name

if TYPE_CHECKING:
    from datetime import datetime
    from os import PathLike

    from pydantic import BaseModel

    from turnloom.app.workflows import Workflows
    from turnloom.flow.logic.flows import Flow
    from turnloom.log.spec import RunKey
    from turnloom.runtime.runs import Runs
    from turnloom.runtime.schedules import Scheduling
    from turnloom.schedules.spec import PlannedStart, ScheduleStatus, StartedFiring
    from turnloom.wiring import Parts

S = TypeVar("S", bound="BaseModel")


class Schedules:
    """The schedules of `turnloom.toml`, and starts that are planned for an instant.

    `serve` and `worker` fire them; a program that does so itself calls `serve`, or `fire_due` from
    time to time. Any number of processes may: each firing starts one run.

    Attributes:
        is_served: Whether `serve` runs in this process.
    """

    def __init__(
        self,
        open: "Callable[[], Parts]",
        serve: "Callable[[], Runs]",
        workflows: "Workflows",
        access: Access = PROGRAM,
    ) -> None:
        self._open = open
        self._drive = serve
        self._workflows = workflows
        self._access = access
        self._made: Scheduling | None = None
        self.is_served = False

    async def list(self, *, app_id: str | None = None) -> "list[ScheduleStatus]":
        """The schedules of a tenant, with their next and their last firing.

        Raises:
            DefinitionError: `[[schedule]]` is invalid; it has all problems.
        """
        tenant = self._access.tenant(app_id, "explain")
        return await (await self._service()).status(tenant)

    async def planned(self, limit: int = 100, *, app_id: str | None = None) -> "list[PlannedStart]":
        """At most `limit` planned starts of a tenant, the next one first; those with an `error`
        could not start."""
        tenant = self._access.tenant(app_id, "explain")
        return [*await (await self._service()).planned(tenant, as_count(limit, "`limit`", 0))]

    async def cancel(self, run: str, *, app_id: str | None = None) -> bool:
        """Cancel a planned start; returns whether it was there."""
        key = self._access.key(app_id, run)
        async with self._access.noting("schedule.cancelled", key.id, "runs:write", "explain"):
            return await (await self._service()).cancel(key)

    async def fire(self, name: str, *, app_id: str | None = None) -> "StartedFiring":
        """Start a run of a schedule now, beside its firings.

        Raises:
            UsageError: there is no such schedule.
        """
        tenant = self._access.tenant(app_id, "runs:write", "explain")
        self._drive()
        return await (await self._service()).fire(tenant, as_name(name, "`name`"))

    async def rested(self, fired: "StartedFiring") -> None:
        """Wait until a run that was started here ends or waits.

        Raises:
            TurnloomError: the run cannot be driven here.
        """
        from turnloom.log.spec import RunKey

        await self._drive().rested(RunKey(fired.tenant, fired.run))

    async def fire_due(self) -> "list[StartedFiring]":
        """Start what is due, and drive it in this process; returns what was started here.

        Raises:
            DefinitionError: `[[schedule]]` is invalid; it has all problems.
            StoreUnavailable: the rest stays due.
        """
        self._drive()
        return await (await self._service()).fire_due()

    async def serve(self) -> None:
        """Start what is due when it is due, until cancelled.

        Raises:
            DefinitionError: `[[schedule]]` is invalid; it has all problems.
        """
        self._drive()
        service = await self._service()
        self.is_served = True
        try:
            await service.serve()
        finally:
            self.is_served = False

    async def plan(
        self,
        workflow: "str | PathLike[str] | Flow[S]",
        state: "S | None",
        owner: tuple[str, str],
        at: "datetime | str",
    ) -> "RunKey":
        """Plan the start of a run of a user and tenant, as `Loom.start(at=…)` does.

        Raises:
            DefinitionError: the workflow does not pass its check; nothing was planned.
            InvalidUpdate: it is not a state of the flow; nothing was planned.
            UsageError: the instant has no zone, or the store has no `schedules`.
        """
        from turnloom.app.choosing import later_time
        from turnloom.app.scheduling import PlannedRun, plan_run

        parts, (user, tenant) = self._open(), owner
        when = later_time(at, "`at`", parts.clock.now()) or parts.clock.now()
        asked = PlannedRun(workflow, state, user, tenant, at=when)
        return await plan_run(parts, await self._service(), asked)

    async def _service(self) -> "Scheduling":
        """The service behind it, made on first use."""
        if self._made is None:
            from turnloom.app.scheduling import schedule_runs

            self._made = await schedule_runs(self._open(), self._workflows)
        return self._made
