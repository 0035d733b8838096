"""Runs over several lives of a process, each killed somewhere, the last one not."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tests.support.plays import Person, attend
from tests.support.worlds import begin, make_world, with_log
from turnloom.agents.spec import Callee
from turnloom.assembly.spec import Chosen, ContextProvider, ContextRequest, ContextSlice
from turnloom.kernel.values import Json
from turnloom.log.events import RunStarted
from turnloom.log.ports import EventLog
from turnloom.log.spec import Event
from turnloom.runtime.service.runs import World
from turnloom.runtime.spec import Loaded, Staff
from turnloom.testing import CrashingCallee, CrashingEngine, CrashingLog, Fuse, Killed
from turnloom.variables.spec import Context
from turnloom.wiring import Collections, Folders

OUTCOMES = ("tool.returned", "tool.failed", "lifecycle.tool_result", "lifecycle.tool_error")


class Watched:
    """A tool or hook that checks what the log knows when it is called."""

    def __init__(self, callee: Callee, log: EventLog, keys: list[str]) -> None:
        self.schema = callee.schema
        self.may_ask = callee.may_ask
        self._callee = callee
        self._log = log
        self._keys = keys

    async def __call__(self, arguments: Mapping[str, Json], context: Context) -> Any:
        self._keys.append(context.idempotency_key)
        run, _, key = context.idempotency_key.partition("/")
        events = await self._log.read(run)
        assert any(event.id == f"{key}?" for event in events), "acted before saying so"
        done = [event for event in events if event.id.rpartition(".")[0] == key]
        assert not any(event.kind in OUTCOMES for event in done), "what completed ran again"
        return await self._callee(arguments, context)


class Mortal:
    """Workflows as a process has them that may be killed around every call."""

    def __init__(
        self, log: EventLog, fuse: Fuse, keys: list[str], collections: Collections | None
    ) -> None:
        self._folders = Folders(collections=collections)
        self._log = log
        self._fuse = fuse
        self._keys = keys

    async def load(self, source: str) -> Loaded:
        return self._mortal(await self._folders.load(source))

    async def restore(self, started: RunStarted) -> Loaded:
        return self._mortal(await self._folders.restore(started))

    def _mortal(self, loaded: Loaded) -> Loaded:
        fuse = self._fuse
        return replace(
            loaded,
            staff={name: self._staffed(each) for name, each in loaded.staff.items()},
            tools={name: self._watched(each) for name, each in loaded.tools.items()},
            hooks={number: self._watched(each) for number, each in loaded.hooks.items()},
            selector=loaded.selector and CrashingEngine(loaded.selector, fuse),
        )

    def _staffed(self, staff: Staff) -> Staff:
        engines = tuple(CrashingEngine(each, self._fuse) for each in staff.engines)
        context = staff.context
        if isinstance(context, Chosen):
            context = replace(context, provider=self._asked(context))
        return replace(staff, engines=engines, context=context)

    def _asked(self, chosen: Chosen) -> ContextProvider:
        async def ask(request: ContextRequest) -> ContextSlice:
            self._fuse.point()
            given = await chosen.provider(request)
            self._fuse.point()
            return given

        return ask

    def _watched(self, callee: Callee) -> Callee:
        return CrashingCallee(Watched(callee, self._log, self._keys), self._fuse)


class Lives:
    """One run; `keys` has the key of every call of a tool or hook that was begun."""

    def __init__(
        self,
        folder: str,
        person: Person,
        store: Any = None,
        collections: Collections | None = None,
    ) -> None:
        self.keys: list[str] = []
        self._collections = collections
        self.passed = 0
        self._folder = folder
        self._person = person
        self._world = make_world(store=store, collections=collections)

    async def live(self, *kills: int) -> list[Event]:
        """The log of the run after as many lives; each ends when its fuse is burnt."""
        run = await begin(self._world, self._folder)
        for points in kills:
            try:
                await self._life(run, Fuse(points))
            except Killed:
                continue
        fuse = Fuse()
        events = await self._life(run, fuse)
        self.passed = fuse.passed
        return events

    async def _life(self, run: str, fuse: Fuse) -> list[Event]:
        log = self._world.stores.log
        world: World = replace(
            self._world, definitions=Mortal(log, fuse, self.keys, self._collections)
        )

        def person(question: Any) -> Any:
            fuse.point()
            return self._person(question)

        return await attend(with_log(world, CrashingLog(log, fuse)), run, person)
