"""Programs whose runs a test drives until they rest, and that may be killed at every point."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextvars import copy_context
from datetime import datetime
from functools import partial
from typing import Any, Literal, TypeVar

from tests.support.world import PATIENCE, World
from turnloom import Loom, Run
from turnloom.testing import CrashingBeliefs, CrashingInbox, CrashingLog, Fuse, Killed

T = TypeVar("T")


class CrashingStore:
    """A store whose program may be killed at each write to its log and its inbox, and to beliefs
    that are kept elsewhere."""

    def __init__(self, store: Any, fuse: Fuse, beliefs: Any = None) -> None:
        self._store = store
        self.log = CrashingLog(store.log, fuse)
        self.inbox = CrashingInbox(store.inbox, fuse)
        self.beliefs = store.beliefs if beliefs is None else CrashingBeliefs(beliefs, fuse)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


class RestingScheduler:
    """Drives each run that is woken, and tells when it rests; time passes only in the test."""

    def __init__(self, *, idle: bool = False) -> None:
        self.died = asyncio.Event()
        self._idle = idle
        self._drive: Callable[[str], Awaitable[datetime | None]] | None = None
        self._woken: set[str] = set()
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._due: dict[str, datetime | None] = {}
        self._changed = asyncio.Event()
        self._context = copy_context()

    async def wake(self, run: str, *, tenant: str, at: datetime | None = None) -> None:
        """Drive the run, unless that is for later."""
        if at is None:
            self._woken.add(run)
            self._pump()

    async def cancel(self, run: str) -> None:
        """Interrupt the drive of a run."""
        self._woken.discard(run)
        if run in self._tasks:
            self._tasks[run].cancel()

    async def status(self, run: str) -> Literal["idle", "queued", "driving", "timer"]:
        """Where the run stands."""
        if run in self._tasks:
            return "driving"
        return "queued" if run in self._woken else "timer" if self._due.get(run) else "idle"

    async def serve(
        self,
        drive: Callable[[str], Awaitable[datetime | None]],
        *,
        slots: int,
        limits: Mapping[str, int],
    ) -> None:
        """Drive what is woken until cancelled."""
        self._drive, self._context = drive, copy_context()
        try:
            self._pump()
            await asyncio.get_running_loop().create_future()
        finally:
            self._drive = None
            tasks = [*self._tasks.values()]
            for task in tasks:
                task.cancel()
            if tasks:
                await asyncio.wait(tasks)

    async def rest(self, run: str) -> datetime | None:
        """Wait until a run rests; the instant at which it wants to be woken, if any.

        Raises:
            Killed: its program is dead.
        """
        while not (self.died.is_set() or self._is_at_rest(run)):
            self._changed.clear()
            await self._changed.wait()
        if self.died.is_set():
            raise Killed
        return self._due.get(run)

    def _is_at_rest(self, run: str) -> bool:
        return run in self._due and run not in self._tasks and run not in self._woken

    def _pump(self) -> None:
        if self._drive is None or self._idle or self.died.is_set():
            return
        loop = asyncio.get_running_loop()
        for run in self._woken - self._tasks.keys():
            self._woken.discard(run)
            going = self._go(run, self._drive)
            self._tasks[run] = task = loop.create_task(going, context=self._context.copy())
            task.add_done_callback(partial(self._ended, run))

    async def _go(self, run: str, drive: Callable[[str], Awaitable[datetime | None]]) -> None:
        try:
            self._due[run] = await drive(run)
        except Killed:
            self.died.set()

    def _ended(self, run: str, task: "asyncio.Task[None]") -> None:
        del self._tasks[run]
        self._pump()
        self._changed.set()


class Program:
    """One life of a program over a world. It dies when its fuse is burnt."""

    def __init__(
        self, world: World, fuse: Fuse | None = None, *, beliefs: Any = None, idle: bool = False
    ) -> None:
        self.fuse = fuse or Fuse()
        self._world = world
        self._beliefs = beliefs
        self._scheduler = RestingScheduler(idle=idle)

    def app(self, **settings: Any) -> Loom:
        """Its app."""
        store: Any = CrashingStore(self._world.store, self.fuse, self._beliefs)
        return Loom(
            store=store,
            clock=self._world.clock,
            entropy=self._world.entropy,
            environment=self._world.environment,
            documents=self._world.documents,
            scheduler=self._scheduler,
            **settings,
        )

    async def rest(self, run: Run) -> datetime | None:
        """Wait until a run rests; the instant at which it wants to be woken, if any.

        Raises:
            Killed: the program is dead.
        """
        async with asyncio.timeout(PATIENCE):
            return await self._scheduler.rest(run.id)

    async def do(self, doing: Coroutine[Any, Any, T]) -> T:
        """What a call gives, unless the program dies meanwhile.

        Raises:
            Killed: the program is dead.
        """
        acting = asyncio.ensure_future(doing)
        dying = asyncio.ensure_future(self._scheduler.died.wait())
        try:
            async with asyncio.timeout(PATIENCE):
                await asyncio.wait({acting, dying}, return_when=asyncio.FIRST_COMPLETED)
            if not acting.done():
                raise Killed
            return acting.result()
        finally:
            acting.cancel()
            dying.cancel()
            await asyncio.wait({acting, dying})
