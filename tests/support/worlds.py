"""Worlds for tests: real stores, a clock and chance that obey."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from turnloom.adapters.inline import InlineScheduler
from turnloom.adapters.memory import MemoryStore
from turnloom.agents.spec import Engine
from turnloom.errors import LogError
from turnloom.log.ports import EventLog
from turnloom.log.spec import Event
from turnloom.runtime.logic import codec
from turnloom.runtime.service.driver import Driver, Stores
from turnloom.runtime.service.runs import Runs, World
from turnloom.testing import FakeClock, FakeDocuments, FakeEntropy, FakeEnvironment
from turnloom.variables.ports import DocumentStore
from turnloom.variables.service import ContextSource
from turnloom.wiring import Collections, Folders


def make_world(
    engine: Engine | None = None,
    store: Any = None,
    env: dict[str, str] | None = None,
    documents: DocumentStore | None = None,
    collections: Collections | None = None,
) -> World:
    """A world over a store, in memory unless told otherwise."""
    store = store or MemoryStore(codec())
    clock = FakeClock()
    return World(
        Stores(
            store.log,
            store.inbox,
            store.claims,
            store.snapshots,
            store.artifacts,
            store.beliefs,
            store.results,
        ),
        clock,
        FakeEntropy(),
        FakeEnvironment(env),
        documents or FakeDocuments(),
        Folders(engine, collections=collections),
        InlineScheduler(clock),
    )


class Refusing:
    """A log that refuses to store a kind of event."""

    def __init__(self, log: EventLog, kind: str, error: LogError) -> None:
        self._log = log
        self._kind = kind
        self._error = error

    async def append(self, run: str, events: Sequence[Event], expected: int) -> Sequence[Event]:
        if any(event.kind == self._kind for event in events):
            raise self._error
        return await self._log.append(run, events, expected)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)


def make_driver(world: World) -> Driver:
    """A fresh driver, as a process that has just started has one."""
    context = ContextSource(world.environment, world.documents)
    return Driver(world.stores, (world.clock, world.entropy), world.definitions, context)


def with_engine(world: World, engine: Engine) -> World:
    """The same stores with another engine, as after a restart."""
    return replace(world, definitions=Folders(engine))


def with_log(world: World, log: EventLog) -> World:
    """The same world with its log behind another one."""
    return replace(world, stores=replace(world.stores, log=log))


async def begin(world: World, folder: str) -> str:
    """A run begun and not yet driven."""
    return await Runs(world).start(folder, user="u1", tenant="acme")
