"""No way to read a store gives a tenant what another one keeps, whatever they are called."""

import asyncio
import inspect
import tempfile
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from tests.adapters.postgres.test_trouble import execute
from tests.support.world import Refitted
from tests.tenants.canaries import (
    CLAIM,
    READERS,
    WRITERS,
    act,
    betrayed,
    look,
    scenes,
)
from tests.tenants.deeds import Deed, canary
from tests.tenants.test_reflection import ports_of
from turnloom import ports
from turnloom.adapters.memory import MemoryStore
from turnloom.adapters.memory.vectors import MemoryVectors
from turnloom.adapters.postgres import PostgresStore
from turnloom.adapters.postgres.vectors import PostgresVectors
from turnloom.adapters.sqlite import SqliteStore
from turnloom.adapters.sqlite.vectors import SqliteVectors
from turnloom.board.spec import Public, is_shared
from turnloom.testing.contracts import CODEC
from turnloom.testing.contracts.facts import key

BESIDE = (
    ports.BranchingLog,
    ports.Verifier,
    ports.Copies,
    ports.Removals,
    ports.VectorStore,
    ports.PrunableStore,
    ports.FeedbackStore,
    ports.ScheduleStore,
    ports.JobStore,
)
PORTS = {port.__name__: port for port in (*ports_of(ports.Store), *BESIDE)}
KINDS = [*WRITERS, CLAIM]
OF_SERVER = ["Artifacts", "BeliefStore", "VectorStore", "PrunableStore"]
SPACE = ports.Space("embedder", "1", 2)
# The ports through which a tenant finds what another one shares.
SHARING = ("Artifacts.", "VectorStore.")
SCOPED = HealthCheck.function_scoped_fixture
# To shrink a scene takes minutes where each has a database.
UNSHRUNK = (Phase.generate,)

# Methods of stores that give nothing of one tenant, each with its reason.
EXEMPT = {
    "Inbox.arrivals": "a process hears of the mail of all tenants, and gets keys, not mail",
    "ScheduleStore.due": "a process fires the starts of all tenants, each with its tenant",
    "ScheduleStore.upcoming": "a process waits for the next start of any tenant; it gives a time",
    "Artifacts.aclose": "it closes",
    "BeliefStore.aclose": "it closes",
    "VectorStore.aclose": "it closes",
}
# Protocols for programs that are no ports of a store, each with its reason.
NO_STORES = {
    "Audit": "its suite has the tenants",
    "Backlog": "it gives keys to processes that drive runs of all tenants",
    "Callee": "it is a tool",
    "Clock": "it tells the time",
    "CommitSignals": "it says that something happened, and neither what nor whose",
    "Drive": "it is a process's own",
    "DocumentStore": "people's own documents; its suite has the tenants",
    "Embedder": "it computes",
    "Engine": "it answers",
    "Entropy": "it gives chance",
    "Environment": "it is of the process",
    "Keys": "its suite has the tenants",
    "Migrator": "it updates the schema",
    "Observer": "it is told of the runs of its app",
    "Permits": "it counts drives and calls",
    "PersonalData": "it removes; the suites of its ports have the tenants",
    "PlainSearch": "what it finds is for everybody",
    "Pruner": "it removes; its suite has the tenants",
    "Scheduler": "it keeps keys only",
    "SharedScheduler": "it keeps keys only",
    "Splitter": "it computes",
    "Store": "it is all of them",
    "TenantList": "it lists them, for those who keep the store",
    "TokenCounter": "it computes",
    "ToolServer": "it has tools",
    "VectorSearch": "it asks a `VectorStore`, and its suite has the tenants",
    "Vectors": "it opens collections",
}


def public(port: type) -> set[str]:
    """The methods of a port, with its name."""
    found = inspect.getmembers(port, inspect.isfunction)
    return {f"{port.__name__}.{name}" for name, _ in found if not name.startswith("_")}


def test_every_port_has_its_canaries() -> None:
    named = {name: getattr(ports, name) for name in ports.__all__}
    protocols = {name for name, each in named.items() if getattr(each, "_is_protocol", False)}
    assert protocols == PORTS.keys() | NO_STORES.keys()


def test_every_method_of_a_store_is_tried() -> None:
    there = {method for port in PORTS.values() for method in public(port)}
    assert there == READERS.keys() | WRITERS.keys() | {CLAIM} | EXEMPT.keys()


def in_memory() -> Any:
    """A store and a collection in memory."""
    return Refitted(MemoryStore(CODEC), vectors=MemoryVectors())


async def play(store: Any, names: Sequence[str], deeds: Sequence[Deed]) -> list[dict[str, Any]]:
    """What each of two tenants finds after a scene; nothing of it is the other's."""
    kinds = PORTS if hasattr(store, "log") else OF_SERVER
    async with AsyncExitStack() as held:
        await act(store, names, deeds, held)
        found = [await look(store, name, names, list(kinds)) for name in names]
    for who in range(2):
        assert betrayed(found[who], names, who) == []
    return found


async def alone(names: Sequence[str], deeds: Sequence[Deed], who: int) -> dict[str, Any]:
    """What a tenant finds in a store of its own."""
    store = in_memory()
    async with AsyncExitStack() as held:
        await act(store, names, [deed for deed in deeds if deed.who == who], held)
        return await look(store, names[who], names, list(PORTS))


async def compare(store: Any, names: Sequence[str], deeds: Sequence[Deed]) -> None:
    """A tenant finds what it would find if it had the store for itself, but for what is shared."""
    found = await play(store, names, deeds)
    for who in range(2):
        own = await alone(names, deeds, who)
        for method, each in found[who].items():
            if not (method.startswith(SHARING) and shares(deeds, 1 - who)):
                assert each == own[method], method


def shares(deeds: Sequence[Deed], who: int) -> bool:
    """Whether a tenant shares an artifact in a scene."""
    put = [deed for deed in deeds if deed.who == who and deed.kind.startswith(SHARING)]
    return any(is_shared(deed.visibility) for deed in put)


@settings(max_examples=150)
@given(scene=scenes(KINDS))
def test_memory(scene: tuple[list[str], list[Deed]]) -> None:
    asyncio.run(compare(in_memory(), *scene))


@pytest.mark.doors
@settings(max_examples=60, phases=UNSHRUNK)
@given(scene=scenes(KINDS))
def test_sqlite(scene: tuple[list[str], list[Deed]]) -> None:
    async def live() -> None:
        store = SqliteStore(Path(folder, "turnloom.db"), CODEC)
        vectors = SqliteVectors(Path(folder, "vectors.db"), "shelf", SPACE)
        try:
            await compare(Refitted(store, vectors=vectors), *scene)
        finally:
            await vectors.aclose()
            await store.aclose()

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(live())


@pytest.mark.doors
@settings(max_examples=15, phases=UNSHRUNK, suppress_health_check=[SCOPED])
@given(scene=scenes(KINDS))
def test_postgres(postgres_url: str, scene: tuple[list[str], list[Deed]]) -> None:
    async def live() -> None:
        await execute(postgres_url, "DROP SCHEMA IF EXISTS scene CASCADE; CREATE SCHEMA scene")
        url = f"{postgres_url}?options=-csearch_path%3Dscene%2Cpublic"
        store = PostgresStore(url, CODEC)
        vectors = PostgresVectors(url, "shelf", SPACE)
        try:
            await play(Refitted(store, vectors=vectors), *scene)
        finally:
            await vectors.aclose()
            await store.aclose()

    asyncio.run(live())


class Careless:
    """Plans of all tenants under their digests."""

    def __init__(self) -> None:
        self._kept: dict[str, Any] = {}

    async def keep(self, tenant: str, digest: str, plan: Any) -> None:
        self._kept.setdefault(digest, plan)

    async def find(self, tenant: str, digest: str) -> Any:
        return self._kept.get(digest)


async def test_a_store_that_mixes_tenants_is_found() -> None:
    store, names = SimpleNamespace(plans=Careless()), ("ann", "bob")
    await WRITERS["Plans.keep"](store, "ann", Deed(0, "Plans.keep", "c", 1, Public()))
    found = await look(store, "bob", names, ["Plans"])
    assert betrayed(found, names, 1) == ["Plans.find"]
    assert betrayed(found, names, 0) == []


async def test_what_a_snapshot_says_is_looked_into() -> None:
    store, names = MemoryStore(CODEC), ("ann", "bob")
    await store.snapshots.save(key("c", "bob"), 1, canary("ann").encode())
    assert betrayed(await look(store, "bob", names, ["Snapshots"]), names, 1) == ["Snapshots.load"]
