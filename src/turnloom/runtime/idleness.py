"""Wait until a board is idle, wherever its runs are driven."""

import asyncio
from collections.abc import Awaitable, Callable

from turnloom.log.events import ENDS, RunPaused, RunStarted
from turnloom.log.ports import EventLog
from turnloom.log.service import all_runs
from turnloom.log.spec import UNREADABLE, Event, RunKey
from turnloom.runtime.activity import Activity
from turnloom.runtime.drive.intake import mail_of
from turnloom.runtime.ports import Inbox

# Seconds between two looks at runs that workers drive.
PAUSE = 0.1

# Runs of this program that workers drive, and whose failures are looked for: the latest ones.
REMEMBERED = 10_000


class Idleness:
    """Whether a board is busy: the runs that this program started, while it drives them itself, or
    all runs of the board, where workers drive them. `has` says which runs belong to the board."""

    def __init__(
        self,
        activity: Activity,
        log: EventLog,
        inbox: Inbox,
        tenant: str,
        *,
        has: Callable[[RunStarted], bool],
        is_shared: bool,
    ) -> None:
        self._activity = activity
        self._log = log
        self._inbox = inbox
        self._tenant = tenant
        self._has = has
        self._is_shared = is_shared
        self._started: dict[str, None] = {}

    @property
    def runs(self) -> list[str]:
        """The runs that this program started: the busy ones, or those that workers drive."""
        return [*self._started] if self._is_shared else self._activity.runs

    def remember(self, run: str) -> None:
        """Note a run that this program started, and that workers drive."""
        self._started.pop(run, None)
        self._started[run] = None
        if len(self._started) > REMEMBERED:
            del self._started[next(iter(self._started))]

    async def is_idle(self) -> bool:
        """Whether nothing runs, and nothing will without outside help."""
        return not await self.busy()

    async def busy(self) -> list[str]:
        """The busy runs: they continue by themselves, or have mail."""
        if not self._is_shared:
            return self._activity.runs
        return [
            last.run
            async for first, last in all_runs(self._log, self._tenant, unfinished=True)
            if isinstance(first.data, RunStarted)
            and self._has(first.data)
            and last.kind not in ENDS
            and (_continues(last) or await mail_of(self._inbox, RunKey(self._tenant, last.run)))
        ]

    async def until(self, condition: Callable[[], Awaitable[bool]], seconds: float | None) -> None:
        """Wait until a condition holds; it is checked again after each change here, or every now
        and then where workers drive the runs.

        Raises:
            TimeoutError: it does not hold in time.
            UsageError: it never will, as nothing is driven any more.
        """
        if not self._is_shared:
            await self._activity.until(condition, seconds)
            return
        async with asyncio.timeout(seconds):
            while not await condition():  # noqa: ASYNC110 - other processes change it
                await asyncio.sleep(PAUSE)

    async def take_failures(self) -> list[Exception]:
        """The failures since the last call, in the runs that this program started."""
        started, self._started = self._started, {}
        for run in started:
            for event in await self._log.read(RunKey(self._tenant, run)):
                self._activity.note(event)
        return self._activity.take_failures()


def _continues(last: Event) -> bool:
    """Whether a run with this last event is driven, or will be soon by itself."""
    if not isinstance(last.data, RunPaused):
        return last.kind != UNREADABLE
    return last.data.due is not None and not last.data.waiting_for
