"""Places of limits in this process."""

import asyncio
from collections import deque

from turnloom.runtime.spec import Limit

# Seconds until it is worth asking again for a place that others have.
AGAIN = 0.05
MINUTE = 60.0


class InlinePermits:
    """Places of limits that hold for the runs of this process."""

    def __init__(self) -> None:
        self._held: dict[str, set[str]] = {}
        self._taken: dict[str, deque[float]] = {}

    async def acquire(self, limit: Limit, place: str) -> float:
        """Take a place; 0, or the seconds until it is worth asking again."""
        now = asyncio.get_running_loop().time()
        held = self._held.setdefault(limit.name, set())
        if limit.at_once and len(held) >= limit.at_once:
            return AGAIN
        if limit.per_minute:
            taken = self._taken.setdefault(limit.name, deque())
            while taken and taken[0] <= now - MINUTE:
                taken.popleft()
            if len(taken) >= limit.per_minute:
                return max(taken[0] + MINUTE - now, 0.001)
            taken.append(now)
        held.add(place)
        return 0.0

    async def release(self, limit: Limit, place: str) -> None:
        """Give a place back; what was taken per minute stays taken."""
        held = self._held.get(limit.name, set())
        held.discard(place)
        if not held:
            self._held.pop(limit.name, None)
