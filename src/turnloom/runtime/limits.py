"""Limits of all runs together: calls of models, and turns of agents."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import count
from types import TracebackType

import anyio

from turnloom.agents.events import ModelLimited
from turnloom.agents.spec import Task
from turnloom.runtime.calls import Waiting
from turnloom.runtime.journal import Journal
from turnloom.runtime.ports import Permits
from turnloom.runtime.spec import Limit

# Seconds that a call waits for a limit before its run is parked.
PATIENCE = 2.0

# The longest time in seconds that a run stays parked for a limit; the first one is the patience,
# and each is twice as long.
LONGEST = 60.0

# Seconds between two looks at the turns of an agent in all processes.
PAUSE = 0.1

# In limits of models: every model that is not named, each by itself.
EVERY_MODEL = "*"


class Congested(Waiting):
    """The work waits for a limit, until an instant at least."""

    def __init__(self, due: datetime) -> None:
        super().__init__(due.isoformat())
        self.due = due


@dataclass(frozen=True, slots=True)
class CallLimits:
    """The limits of model calls, by model."""

    permits: Permits
    models: Mapping[str, Limit] = field(default_factory=dict[str, Limit])

    @asynccontextmanager
    async def hold(self, journal: Journal, key: str, task: Task) -> AsyncGenerator[None]:
        """Make a model call while the context is open, once its limit allows it. That it waits is
        recorded.

        Raises:
            Congested: it takes longer than a moment.
        """
        limit = self._limit_of(task.model or "")
        if limit is None:
            yield
            return
        place = f"{journal.run.tenant}/{journal.run.id}/{key}"
        await self._acquire(journal, key, task, limit, place=place)
        try:
            yield
        finally:
            with anyio.CancelScope(shield=True):
                await self.permits.release(limit, place)

    def _limit_of(self, model: str) -> Limit | None:
        limit = self.models.get(model) or self.models.get(EVERY_MODEL)
        return limit and limit._replace(name=f"model {model}")

    async def _acquire(
        self, journal: Journal, key: str, task: Task, limit: Limit, place: str
    ) -> None:
        loop = asyncio.get_running_loop()
        until, number = loop.time() + PATIENCE, -1
        while pause := await self.permits.acquire(limit, place):
            if number < 0:
                ids = (f"{key}/limit.{each}" for each in count())
                number, id = next(
                    (n, id) for n, id in enumerate(ids) if journal.recorded(id) is None
                )
                fact = ModelLimited(task.turn, task.agent, task.model or "", str(limit))
                await journal.put(id, fact)
            if loop.time() + pause > until:
                seconds = max(pause, min(PATIENCE * 2**number, LONGEST))
                raise Congested(journal.clock.now() + timedelta(seconds=seconds))
            await asyncio.sleep(pause)


class SharedRoom:
    """A place among the turns of an agent in all processes."""

    def __init__(self, permits: Permits, limit: Limit, place: str) -> None:
        self._permits = permits
        self._limit = limit
        self._place = place

    def locked(self) -> bool:
        """Whether it may take long to get it."""
        return True

    async def __aenter__(self) -> None:
        while pause := await self._permits.acquire(self._limit, self._place):  # noqa: ASYNC110
            await asyncio.sleep(min(pause, PAUSE))

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        with anyio.CancelScope(shield=True):
            await self._permits.release(self._limit, self._place)
