"""What outlives a program in tests: its store, time, chance, environment and documents.

Programs come and go over one world. Each is an app of its own, as after a restart, and may be
killed when an event is stored. `tests.support.programs` has programs that are driven by hand.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from turnloom import Loom, Run
from turnloom.adapters.inline import InlineScheduler
from turnloom.adapters.memory import MemoryStore
from turnloom.log.events import ENDS
from turnloom.log.ports import Clock
from turnloom.log.spec import Event, RunKey
from turnloom.runtime.logic import codec
from turnloom.runtime.ports import Drive
from turnloom.runtime.spec import LimitWait
from turnloom.testing import FakeClock, FakeDocuments, FakeEntropy, FakeEnvironment, Killed

# What a program does with its app; done again after a kill, it does what is left to do.
Script = Callable[[Loom], Awaitable[None]]

# Seconds within which everything that a test waits for happens, however busy the machine is.
PATIENCE = 60.0


# Whose runs are in the worlds of these tests.
TENANTS = ("local", "acme")


@dataclass
class Kill:
    """Ends a program when an event of a kind is stored for the n-th time: before that, or after."""

    kind: str
    number: int = 1
    before: bool = False

    def meets(self, events: Sequence[Event], *, before: bool) -> bool:
        """Whether this is the place."""
        if before != self.before:
            return False
        self.number -= sum(event.kind == self.kind for event in events)
        return self.number <= 0


class MortalLog:
    """A log whose program may be killed around an append; a dead program stores nothing, and gets
    no further than that before it is buried."""

    def __init__(self, log: Any, kill: Kill | None) -> None:
        self._log = log
        self._kill = kill
        self.died, self.buried = asyncio.Event(), asyncio.Event()

    async def append(
        self, run: RunKey, events: Sequence[Event], expected: int, fence: int | None = None
    ) -> Sequence[Event]:
        await self._check(events, before=True)
        try:
            stored = await self._log.append(run, events, expected, fence)
        except asyncio.CancelledError:  # they may be stored nevertheless
            self._note(events, before=False)
            raise
        await self._check(events, before=False)
        return stored

    def _note(self, events: Sequence[Event], *, before: bool) -> None:
        if self._kill is not None and self._kill.meets(events, before=before):
            self.died.set()

    async def _check(self, events: Sequence[Event], *, before: bool) -> None:
        self._note(events, before=before)
        if self.died.is_set():
            await self.buried.wait()
            raise Killed

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)


class Refitted:
    """A store with some of its ports replaced."""

    def __init__(self, store: Any, **ports: Any) -> None:
        self._store = store
        vars(self).update(ports)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


class MortalStore(Refitted):
    """A store whose program may be killed at an append."""

    def __init__(self, store: Any, kill: Kill | None) -> None:
        super().__init__(store, log=MortalLog(store.log, kill))


class MortalScheduler(InlineScheduler):
    """Drives runs until one is killed, and nothing from then on.

    With `skips`, time passes at once to the instant that a run rests for.
    """

    def __init__(self, clock: Clock, *, skips: bool = False) -> None:
        super().__init__(clock)
        self._fake = clock
        self._skips = skips

    async def serve(self, drive: Drive, *, slots: int, limits: Mapping[str, int]) -> None:
        async def mortal(run: RunKey, held: LimitWait | None = None, /) -> datetime | None:
            try:
                due = await drive(run, held)
            except Killed:
                return await asyncio.get_running_loop().create_future()
            if self._skips and due and isinstance(self._fake, FakeClock):
                self._fake.time = max(self._fake.time, due)
            return due

        await super().serve(mortal, slots=slots, limits=limits)


# What a world gives its apps.
_DOORS = ("store", "clock", "entropy", "environment", "documents", "engine")


@dataclass
class World:
    """What outlives a program."""

    store: Any = field(default_factory=lambda: MemoryStore(codec()))
    clock: FakeClock = field(default_factory=FakeClock)
    entropy: FakeEntropy = field(default_factory=FakeEntropy)
    environment: FakeEnvironment = field(default_factory=FakeEnvironment)
    documents: Any = field(default_factory=FakeDocuments)
    engine: Any = None
    collections: Mapping[type, Any] = field(default_factory=dict[type, Any])
    patience: float = PATIENCE

    def app(self, kill: Kill | None = None, *, skips: bool = False, **settings: Any) -> Loom:
        """An app of a program that has just started."""
        scheduler = MortalScheduler(self.clock, skips=skips)
        settings.setdefault("store", MortalStore(self.store, kill))
        return self.open(scheduler=scheduler, **settings)

    def open(self, **settings: Any) -> Loom:
        """An app with these settings, and else with what this world has."""
        given = {name: getattr(self, name) for name in _DOORS}
        app = Loom(**{**given, **settings})
        for collection, search in self.collections.items():
            app.register_collection(collection, search)
        return app

    async def live(self, script: Script, kill: Kill | None = None, **settings: Any) -> bool:
        """Let a program do what its script says; whether it lived to its end."""
        store = MortalStore(self.store, kill)
        app, log = self.app(store=store, **settings), store.log
        acting = asyncio.ensure_future(script(app))
        dying = asyncio.ensure_future(log.died.wait())
        try:
            async with asyncio.timeout(self.patience):
                await asyncio.wait({acting, dying}, return_when=asyncio.FIRST_COMPLETED)
            if not log.died.is_set():
                acting.result()
            return not log.died.is_set()
        finally:
            for task in (acting, dying):
                task.cancel()
            log.buried.set()
            await asyncio.wait({acting, dying})
            await app.aclose()

    async def lives(self, script: Script, *kills: Kill, **settings: Any) -> None:
        """Let programs follow one another: each is killed, the last one is not."""
        for kill in kills:
            assert not await self.live(script, kill, **settings), f"nobody was killed: {kill}"
        assert await self.live(script, **settings)

    async def read(self, run: str) -> list[Event]:
        """The log of a run."""
        return await read_log(self.store, run)

    async def logs(self) -> dict[str, list[Event]]:
        """The logs of all runs, the first one first; plans are no runs."""
        return await read_logs(self.store)


async def read_log(store: Any, run: str) -> list[Event]:
    """The log of a run, whichever of the tenants of these tests has it."""
    found = [await store.log.read(RunKey(tenant, run)) for tenant in TENANTS]
    return [event for events in found for event in events]


async def read_logs(store: Any) -> dict[str, list[Event]]:
    """The logs of all runs of the tenants of these tests, the first one first."""
    ends = [each for tenant in TENANTS for each in reversed(await store.log.runs(tenant, 1000))]
    return {
        first.run: list(await store.log.read(RunKey(first.data.tenant, first.run)))
        for first, _ in sorted(ends, key=lambda each: each[0].at)
    }


async def at_rest(run: Run, after: int = 0) -> Event:
    """The event with which a run comes to its end or begins to wait, behind a position."""
    async for event in run.events(after):
        if event.kind in ENDS or event.kind == "run.paused":
            return event
    raise AssertionError("it never came to rest")


# What a person says to a question; nothing, if that is left to time.
Person = Callable[[Any], Any]


def replying(*answers: Any) -> Person:
    """A person who gives these answers, one after the other; who is asked the same again after a
    kill says the same again."""
    left, said = iter(answers), dict[str, Any]()

    def reply(question: Any) -> Any:
        if question.id not in said:
            said[question.id] = next(left, None)
        return said[question.id]

    return reply


def conversing(folder: str, person: Person | None = None) -> Script:
    """A program that starts a workflow, or goes on with it, and lets a person answer."""

    async def script(app: Loom) -> None:
        runs = await app.runs(app_id="acme")
        if runs:
            run = await app.resume(runs[0].run, app_id="acme")
        else:
            run = await app.start(folder, user_id="u1", app_id="acme")
        position = 0
        while (rest := await at_rest(run, position)).kind not in ENDS:
            position = rest.seq
            question = await run.question()
            if question is None:  # somebody answered it before the kill
                continue
            assert person is not None, f"Nobody was to be asked: {question}"
            said = person(question)
            if said is not None:
                await run.answer(question.id, said)

    return script
