"""One timer per run, on one handle of the event loop."""

import asyncio
from collections.abc import Callable
from datetime import datetime
from heapq import heapify, heappop, heappush
from itertools import count

from turnloom.log.ports import Clock
from turnloom.log.spec import RunKey

# The longest sleep in seconds: a clock that is set, or a machine that slept, is noticed by then.
LONGEST = 0.25
# Below this many entries, dropped timers are left in the heap until they come up.
SPARSE = 64

_Entry = tuple[datetime, int, RunKey]


class Timers:
    """The instants at which runs want to be woken; a run has at most one."""

    def __init__(self, clock: Clock, fire: Callable[[RunKey], None]) -> None:
        self._clock = clock
        self._fire = fire
        self._entries: dict[RunKey, _Entry] = {}
        self._heap: list[_Entry] = []
        self._numbers = count()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._handle: asyncio.TimerHandle | None = None

    def __contains__(self, run: RunKey) -> bool:
        return run in self._entries

    def set(self, run: RunKey, at: datetime) -> None:
        """Wake the run at an instant, in place of the one it had."""
        entry = (at, next(self._numbers), run)
        self._entries[run] = entry
        heappush(self._heap, entry)
        if len(self._heap) > SPARSE + 2 * len(self._entries):
            self._heap = list(self._entries.values())
            heapify(self._heap)
        if self._heap[0] is entry:
            self._arm()

    def drop(self, run: RunKey) -> datetime | None:
        """Forget the timer of a run, and give the instant it was set to."""
        entry = self._entries.pop(run, None)
        return entry[0] if entry else None

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Let timers fire from now on, on this loop."""
        self._loop = loop
        self._arm()

    def stop(self) -> None:
        """Let no timer fire until the next start."""
        if self._handle:
            self._handle.cancel()
        self._loop = self._handle = None

    def _arm(self) -> None:
        if self._handle:
            self._handle.cancel()
            self._handle = None
        if self._loop and self._heap:
            wait = (self._heap[0][0] - self._clock.now()).total_seconds()
            self._handle = self._loop.call_later(min(max(wait, 0.0), LONGEST), self._tick)

    def _tick(self) -> None:
        now = self._clock.now()
        while self._heap and (self._heap[0][0] <= now or self._stale(self._heap[0])):
            entry = heappop(self._heap)
            if not self._stale(entry):
                del self._entries[entry[2]]
                self._fire(entry[2])
        self._arm()

    def _stale(self, entry: _Entry) -> bool:
        return self._entries.get(entry[2]) is not entry
