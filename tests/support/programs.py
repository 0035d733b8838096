"""Programs over a world whose runs are driven by hand: one call is one drive, in the caller's task.

So a test sees a run at rest without waiting for anything, and a kill reaches it as an exception.
"""

import asyncio
from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from datetime import datetime
from types import TracebackType
from typing import Any

from tests.support import stage
from tests.support.world import PATIENCE, Refitted, World
from turnloom import Delivery, Event
from turnloom.errors import LogError
from turnloom.log.events import ENDS
from turnloom.log.spec import RunKey
from turnloom.runtime.ports import Drive, Status
from turnloom.runtime.spec import LimitWait
from turnloom.testing import CrashingEngine, CrashingInbox, CrashingLog, FakeEnvironment, Fuse


class HandScheduler:
    """Drives a run when it is told to; a wake by the task that holds it is such an order."""

    def __init__(self) -> None:
        self._drive = asyncio.get_running_loop().create_future()
        self._hand: asyncio.Task[Any] | None = None

    async def wake(self, run: RunKey, at: datetime | None = None) -> None:
        """Drive the run here and now, or leave it."""
        if self._hand is not None and asyncio.current_task() is self._hand:
            await self.drive(run)

    async def cancel(self, run: RunKey) -> None:
        """Nothing runs that could be interrupted."""

    async def drain(self) -> None:
        """Nothing runs that could be waited for."""

    async def status(self, run: RunKey) -> Status:
        """No run waits for a slot."""
        return "idle"

    async def limited(self, tenant: str, runs: Sequence[str]) -> Mapping[str, LimitWait]:
        """There are no limits."""
        return {}

    async def serve(self, drive: Drive, *, slots: int, limits: Mapping[str, int]) -> None:
        """Keep the drive for those who ask for it."""
        self._drive.set_result(drive)
        await asyncio.get_running_loop().create_future()

    async def drive(self, run: RunKey) -> datetime | None:
        """Drive a run as far as it goes."""
        drive: Drive = await self._drive
        return await drive(run)

    @contextmanager
    def held(self) -> Generator[None]:
        """Drive what the current task wakes."""
        self._hand = asyncio.current_task()
        try:
            yield
        finally:
            self._hand = None


class Program:
    """A process with an app that serves one tenant; leaving its context is its end."""

    def __init__(self, world: World, tenant: str = "local", **settings: Any) -> None:
        self._tenant = tenant
        self._scheduler = HandScheduler()
        self.app = world.open(scheduler=self._scheduler, **settings)

    async def __aenter__(self) -> "Program":
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        await self.app.aclose()

    async def start(self, folder: str, *, user: str = "u1", tenant: str | None = None) -> str:
        """Begin a run without driving it; its id."""
        return (await self.app.start(folder, user_id=user, app_id=tenant or self._tenant)).id

    async def events(self, run: str) -> Sequence[Event]:
        """The events of a run so far."""
        return await self.app.history.events(run, app_id=self._tenant)

    async def once(self, run: str) -> datetime | None:
        """Drive a run as a scheduler does; the instant at which it wants to be woken."""
        await self.app.resume(run, app_id=self._tenant)
        return await self._scheduler.drive(RunKey(self._tenant, run))

    async def drive(self, run: str) -> datetime | None:
        """Drive a run to its rest; the instant at which it wants to be woken.

        What keeps it from there is raised, as it is for those who follow the run.
        """
        due = await self.once(run)
        last = (await self.events(run))[-1]
        if last.kind not in (*ENDS, "run.paused"):
            async with asyncio.timeout(PATIENCE):
                async for _ in self.app.handle(run, app_id=self._tenant).events(last.seq):
                    pass
        return due

    async def answer(self, run: str, value: Any, question: str | None = None) -> Delivery:
        """Answer as the person whom a run asks, and drive it on to its next rest."""
        await self.app.resume(run, app_id=self._tenant)
        handle = self.app.handle(run, app_id=self._tenant)
        asked = [each.to for each in await handle.questions() if question in (None, each.id)]
        with self._scheduler.held():
            return await handle.answer(question, value, user_id=asked[0] if asked else None)

    async def cancel(self, run: str, by: str = "u1", reason: str = "") -> bool:
        """Cancel a run, and drive it to its end."""
        await self.app.resume(run, app_id=self._tenant)
        with self._scheduler.held():
            return await self.app.handle(run, app_id=self._tenant).cancel(by=by, reason=reason)


def make_world(
    engine: Any = None, store: Any = None, env: Mapping[str, str] | None = None, **more: Any
) -> World:
    """A world, in memory unless told otherwise."""
    given = {"store": store} if store is not None else {}
    return World(engine=engine, environment=FakeEnvironment(env), **given, **more)


def refitted(world: World, **ports: Any) -> World:
    """The same world, some ports of its store replaced."""
    return replace(world, store=Refitted(world.store, **ports))


class Refusing:
    """A log that refuses to store a kind of event."""

    def __init__(self, log: Any, kind: str, error: LogError) -> None:
        self._log = log
        self._kind = kind
        self._error = error

    async def append(
        self, run: RunKey, events: Sequence[Event], expected: int, fence: int | None = None
    ) -> Sequence[Event]:
        if any(event.kind == self._kind for event in events):
            raise self._error
        return await self._log.append(run, events, expected, fence)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)


async def begin(world: World, folder: str) -> str:
    """A run begun and not yet driven."""
    async with Program(world) as program:
        return await program.start(folder)


async def drive(world: World, run: str) -> datetime | None:
    """Drive a run to its rest, in a process of its own."""
    async with Program(world) as program:
        return await program.drive(run)


async def answer(world: World, run: str, value: Any, question: str | None = None) -> Delivery:
    """Answer what a run asks, and drive it on, in a process of its own."""
    async with Program(world) as program:
        return await program.answer(run, value, question)


@asynccontextmanager
async def mortal(world: World, fuse: Fuse) -> AsyncGenerator[Program]:
    """A program that may be killed at every append, at every message, around every answer of its
    engine, and at the points of its users' code."""
    log, inbox = CrashingLog(world.store.log, fuse), CrashingInbox(world.store.inbox, fuse)
    store = Refitted(world.store, log=log, inbox=inbox)
    engine = world.engine and CrashingEngine(world.engine, fuse)
    stage.burn(fuse)
    try:
        async with Program(world, store=store, engine=engine) as program:
            yield program
    finally:
        stage.burn(Fuse())
