"""Start what is due: schedules, and runs planned for an instant."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from datetime import datetime
from functools import partial

from turnloom.errors import Conflict, StoreUnavailable, TurnloomError, UsageError
from turnloom.kernel.markup import visible
from turnloom.kernel.values import canonical, error_text, nearest
from turnloom.log.ports import Clock
from turnloom.log.spec import RunKey
from turnloom.schedules.logic import due, run_id
from turnloom.schedules.ports import Calendar, ScheduleStore
from turnloom.schedules.spec import (
    Firing,
    PlannedStart,
    Schedule,
    ScheduleStatus,
    StartedFiring,
    StartRequest,
)

# Seconds after which planned starts of other processes are looked for.
POLL = 5.0
# Planned starts that are read at once.
PAGE = 100

# Starts a run under its id; raises Conflict if that run exists.
Start = Callable[[StartRequest], Awaitable[RunKey]]

_log = logging.getLogger("turnloom.schedules")


class Scheduling:
    """The schedules of an app and its planned starts. Any number of processes may fire them: the
    id of each run is derived from its schedule and its instant, so that the log takes it once."""

    def __init__(
        self,
        store: ScheduleStore,
        clock: Clock,
        start: Start,
        calendar: Calendar | None = None,
        declared: Sequence[Schedule] = (),
    ) -> None:
        self._store = store
        self._calendar = calendar
        self._clock = clock
        self._start = start
        self._declared = declared
        self._planned = asyncio.Event()

    async def plan(self, start: PlannedStart) -> None:
        """Keep a start until it is due.

        Raises:
            StoreUnavailable: nothing was kept.
        """
        await self._store.plan(start.tenant, start)
        self._planned.set()

    async def status(self, tenant: str) -> list[ScheduleStatus]:
        """The schedules of a tenant, with their next and last firings."""
        firings, now = await self._store.firings(tenant), self._clock.now()
        return [
            ScheduleStatus(each, self._next(each, now), firings.get(each.name))
            for each in self._declared
            if each.tenant == tenant
        ]

    async def planned(self, tenant: str, limit: int) -> Sequence[PlannedStart]:
        """Planned starts of a tenant, the next one first."""
        return await self._store.planned(tenant, limit)

    async def cancel(self, run: RunKey) -> bool:
        """Drop a planned start; returns whether it was there."""
        return await self._store.settle(run)

    async def fire(self, tenant: str, name: str) -> StartedFiring:
        """Start a run of a schedule now, beside its firings.

        Raises:
            UsageError: the tenant has no such schedule.
        """
        own = {each.name: each for each in self._declared if each.tenant == tenant}
        if name not in own:
            near = nearest(name, own)
            known = f"Known: {', '.join(own)}." if own else "Declare `[[schedule]]`."
            remedy = f"Did you mean {near!r}?" if near else known
            raise UsageError(f"Unknown schedule {name!r}. {remedy}")
        return await self._begin(own[name], self._clock.now(), by_hand=True)

    async def fire_due(self) -> list[StartedFiring]:
        """Start what is due, each once, whichever process comes first; returns what this one
        started, or could not start.

        Raises:
            StoreUnavailable: the rest stays due.
        """
        fired: list[StartedFiring] = []
        for schedule in self._declared:
            fired += await self._fire_schedule(schedule)
        while starts := await self._store.due(self._clock.now(), PAGE):
            for each in starts:
                if (made := await self._fire_planned(each)) is not None:
                    fired.append(made)
        return fired

    async def serve(self) -> None:
        """Start what is due when it is due, until cancelled."""
        while True:
            self._planned.clear()
            try:
                for each in await self.fire_due():
                    _report(each)
                seconds = await self._seconds()
            except StoreUnavailable as error:
                _log.warning("Schedules wait for the store: %s", error)
                seconds = POLL
            try:
                async with asyncio.timeout(seconds):
                    await self._planned.wait()
            except TimeoutError:
                continue

    async def _seconds(self) -> float:
        """Seconds until the next firing, at most those until the next look."""
        now = self._clock.now()
        ahead = [self._next(each, now) for each in self._declared]
        ahead.append(await self._store.upcoming())
        until = min((each for each in ahead if each is not None), default=None)
        if until is None:
            return POLL
        return min(max((until - now).total_seconds(), 0.001), POLL)

    def _next(self, schedule: Schedule, now: datetime) -> datetime | None:
        return next(self._firings(schedule, now), None)

    def _firings(self, schedule: Schedule, after: datetime) -> Iterator[datetime]:
        assert self._calendar is not None
        return self._calendar.firings(schedule.cron, schedule.timezone, after)

    async def _fire_schedule(self, schedule: Schedule) -> list[StartedFiring]:
        now = self._clock.now()
        last = await self._store.begin(schedule.tenant, schedule.name, now)
        firings = partial(self._firings, schedule)
        fired: list[StartedFiring] = []
        for at in due(firings, last.at, now, schedule.missed):
            made = await self._begin(schedule, at)
            firing = Firing(at, made.run, made.error)
            await self._store.record(schedule.tenant, schedule.name, firing)
            fired.append(made)
        return fired

    async def _begin(
        self, schedule: Schedule, at: datetime, *, by_hand: bool = False
    ) -> StartedFiring:
        """Start the run of a firing, unless it exists."""
        run = run_id(schedule.tenant, schedule.name, at, by_hand=by_hand)
        text = "" if schedule.input is None else canonical(schedule.input)
        request = StartRequest(schedule.tenant, run, schedule.workflow, schedule.user, input=text)
        error = await self._try(request)
        return StartedFiring(schedule.name, schedule.tenant, at, run, error=error)

    async def _fire_planned(self, start: PlannedStart) -> StartedFiring | None:
        """Make a planned start."""
        request = StartRequest(
            start.tenant,
            start.run,
            start.workflow,
            start.user,
            state=start.state,
            entry=start.entry,
        )
        error = await self._try(request)
        if not await self._store.settle(RunKey(start.tenant, start.run), error):
            return None
        return StartedFiring("", start.tenant, start.at, start.run, error=error)

    async def _try(self, request: StartRequest) -> str:
        """Start a run; returns why it cannot start, or nothing. A run that exists is started."""
        try:
            await self._start(request)
        except Conflict:
            return ""
        except StoreUnavailable:
            raise
        except TurnloomError as error:
            return visible(f"{error.code}: {error_text(error)}")
        return ""


def _report(fired: StartedFiring) -> None:
    what = f"schedule {fired.schedule!r}" if fired.schedule else "a planned start"
    if fired.error:
        _log.warning("Run %s of %s could not start: %s", fired.run, what, fired.error)
    else:
        _log.info("Run %s of %s started.", fired.run, what)
