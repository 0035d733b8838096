"""Worlds for tests: real stores, a clock and chance that obey."""

from dataclasses import replace
from typing import Any

from weft.adapters.inline import InlineScheduler
from weft.adapters.memory import MemoryStore
from weft.agents.spec import Engine
from weft.log.ports import EventLog
from weft.runtime.logic import codec
from weft.runtime.service.driver import Driver, Stores
from weft.runtime.service.runs import Runs, World
from weft.testing import FakeClock, FakeDocuments, FakeEntropy, FakeEnvironment
from weft.variables.ports import DocumentStore
from weft.variables.service import ContextSource
from weft.wiring import Collections, Folders


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
