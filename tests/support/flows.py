"""Runs of flows over several lives of a process, each killed somewhere, the last one not."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import msgspec
from pydantic import BaseModel

from tests.support.plays import every
from tests.support.worlds import make_driver, make_world
from turnloom.agents.logic.folding import open_question
from turnloom.agents.spec import Workflow
from turnloom.flow.logic.flows import Flow
from turnloom.flow.logic.folding import RETRY
from turnloom.log.events import ENDS
from turnloom.log.spec import Event
from turnloom.runtime.logic import evolve, fresh
from turnloom.runtime.ports import Definitions
from turnloom.runtime.service.beginnings import FlowGiven
from turnloom.runtime.service.driver import Driver
from turnloom.runtime.service.runs import Runs, World
from turnloom.runtime.spec import Reply, Stop
from turnloom.testing import CrashingInbox, CrashingLog, FakeClock, Fuse, Killed
from turnloom.wiring import Folders
from turnloom.wiring import parts as wired
from turnloom.wiring.boards import Boards
from turnloom.wiring.flows import Flows

# What a person says to a question: an answer, or nothing, so that time passes.
Person = Callable[[Any], Any]

# How often a run is driven before it is said to hang.
PATIENCE = 100


def nobody(question: Any) -> Any:
    """Answers nothing."""
    return None


class FlowLives:
    """Runs of one flow, in one store; `fuse` is that of the process that lives now."""

    def __init__(
        self, flow: Flow[Any], state: BaseModel, person: Person = nobody, store: Any = None
    ) -> None:
        self._flow = flow
        self._state = state
        self._person = person
        self._base = make_world(store=store)
        self.fuse = Fuse()
        self.clock = self._base.clock
        assert isinstance(self.clock, FakeClock)

    async def live(self, *kills: int) -> list[Event]:
        """The log of a run after as many lives; each ends when its fuse is burnt."""
        run = await self.begin()
        for points in kills:
            try:
                await self.life(run, Fuse(points))
            except Killed:
                continue
        return await self.life(run, Fuse())

    async def begin(self) -> str:
        """A run begun and not yet driven."""
        loaded = Flows(None).declare(self._flow)
        return await self.runs().start(FlowGiven(loaded, self._state), user="u1", tenant="acme")

    def driver(self) -> Driver:
        """What drives runs in a process that has just started."""
        return make_driver(self._world(Fuse()))

    def runs(self) -> Runs:
        """The runs as another process has them."""
        return Runs(self._world(Fuse()))

    async def life(self, run: str, fuse: Fuse) -> list[Event]:
        """Drive a run to its end, a person answering or time passing; its log."""
        self.fuse = fuse
        driver = make_driver(self._world(fuse))
        for _ in range(PATIENCE):
            due = await driver.drive(run)
            events = await self.log(run)
            if events[-1].kind in ENDS:
                return events
            if not await self._answer(run, events, fuse):
                assert due is not None, "it hangs"
                self.clock.time = max(self.clock.time, due)
        raise AssertionError(f"it goes on for ever: {[event.id for event in events[-9:]]}")

    async def _answer(self, run: str, events: Sequence[Event], fuse: Fuse) -> bool:
        asked = open_question(events)
        said = self._person(asked) if asked else None
        if asked is None or said is None:
            return False
        inbox = CrashingInbox(self._base.stores.inbox, fuse)
        cancel = said if isinstance(said, Stop) else None
        id = "cancel" if cancel else f"{asked.id}/answer"
        await inbox.offer(run, id, cancel or Reply(asked.id, said, "u1"))
        return True

    async def log(self, run: str) -> list[Event]:
        """What the log of a run holds."""
        return list(await self._base.stores.log.read(run))

    def _world(self, fuse: Fuse) -> World:
        flows = Flows(None)
        flows.declare(self._flow)
        store = self._base.stores
        definitions: Definitions = wired.Definitions(Folders(), Boards(None), flows, store.log)
        stores = replace(store, log=CrashingLog(store.log, fuse))
        return replace(self._base, stores=stores, definitions=definitions)

    def replayed(self, events: Sequence[Event]) -> Any:
        """What a run knows after these events."""
        state = fresh(events[0].run, self.workflow)
        for event in events:
            evolve(self.workflow, state, event)
        return state

    @cached_property
    def workflow(self) -> Workflow:
        """The flow as something that decides."""
        return Flows(None).declare(self._flow).workflow


def undone(events: Sequence[Event]) -> list[str]:
    """The places that were made up for, in order."""
    return [fact.place for fact in every(events, "step.compensated")]


def tale(events: Sequence[Event]) -> dict[str, list[Any]]:
    """What a log says of each line of work, and of the rest.

    Paths go on side by side: which of their steps has which number, and what an event follows, is
    not theirs to say; nor is how often the run comes to rest.
    """
    places = dict(_places(events))
    found: dict[str, list[Any]] = {}
    for event in events:
        if event.kind in ("run.resumed", "run.paused"):
            continue
        head, slash, tail = _own(event.id).partition("/")
        place = places.get(head, "")
        data = _plain(msgspec.to_builtins(event.data))
        id = f"{place}{slash}{tail}" if place else event.id
        found.setdefault(place, []).append((id, event.kind, event.actor, data))
    found[""].sort(key=repr)
    return found


def _own(id: str) -> str:
    """An id with its step first; a timer has its step and its time at the end."""
    if id.startswith(RETRY):
        return f"s{id.removeprefix(RETRY).partition('@')[0]}/timer"
    return id


def _places(events: Sequence[Event]) -> Any:
    for fact in every(events, "step.started"):
        yield f"s{fact.number}", fact.place
        if fact.turn:
            yield f"t{fact.turn}", f"{fact.place} in attempt {fact.attempt}"


_SHIFTING = {"at", "due", "as_in", "first", "last", "number", "turn", "frame", "timer", "stack"}


def _plain(data: Any) -> Any:
    if isinstance(data, Mapping):
        return {name: _plain(each) for name, each in data.items() if name not in _SHIFTING}
    return [_plain(each) for each in data] if isinstance(data, list | tuple) else data
