"""Tools that end a driver at any point, as a kill would: before or after an append or an effect."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any

from weft.agents.spec import Answer, Callee, Engine, Task
from weft.kernel.values import Json
from weft.log.ports import EventLog
from weft.log.spec import Event
from weft.variables.spec import Context


class Killed(BaseException):
    """The process is gone. Nothing that handles errors may handle this."""


class Fuse:
    """Lets a number of points pass, then kills; without a number it only counts."""

    def __init__(self, points: int | None = None) -> None:
        self.left = points
        self.passed = 0

    def point(self) -> None:
        """A point at which the process may be killed.

        Raises:
            Killed: this is the point.
        """
        if self.left is not None:
            if self.left == 0:
                raise Killed
            self.left -= 1
        self.passed += 1


class CrashingLog:
    """A log whose driver may be killed before and after each append."""

    def __init__(self, log: EventLog, fuse: Fuse) -> None:
        self._log = log
        self._fuse = fuse

    async def append(self, run: str, events: Sequence[Event], expected: int) -> Sequence[Event]:
        """Store, unless killed before; tell, unless killed after."""
        self._fuse.point()
        stored = await self._log.append(run, events, expected)
        self._fuse.point()
        return stored

    async def read(self, run: str, after: int = 0) -> Sequence[Event]:
        """What the log holds."""
        return await self._log.read(run, after)

    def subscribe(self, run: str, after: int = 0) -> AsyncGenerator[Event]:
        """What the log gets."""
        return self._log.subscribe(run, after)

    async def ends(
        self, limit: int | None = None, *, run: str | None = None
    ) -> Sequence[tuple[Event, Event]]:
        """The ends of runs."""
        return await self._log.ends(limit, run=run)


class CrashingEngine:
    """An engine whose driver may be killed before and after each answer."""

    def __init__(self, engine: Engine, fuse: Fuse) -> None:
        self._engine = engine
        self._fuse = fuse

    async def __call__(self, task: Task) -> Answer:
        """The engine's answer, unless killed."""
        self._fuse.point()
        answer = await self._engine(task)
        self._fuse.point()
        return answer


class CrashingCallee:
    """A tool or hook whose driver may be killed before and after each call."""

    def __init__(self, callee: Callee, fuse: Fuse) -> None:
        self.schema = callee.schema
        self.may_ask = callee.may_ask
        self._callee = callee
        self._fuse = fuse

    async def __call__(self, arguments: Mapping[str, Json], context: Context) -> Any:
        """What the callee gives, unless killed."""
        self._fuse.point()
        given = await self._callee(arguments, context)
        self._fuse.point()
        return given
