"""The store in memory passes every suite."""

import os
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from tests.support.raising import raising
from turnloom.adapters.memory import MemoryStore
from turnloom.errors import RunBusy, UsageError
from turnloom.flow.ports import Results
from turnloom.guards.ports import BeliefStore
from turnloom.log.ports import EventLog
from turnloom.runtime.ports import Plans
from turnloom.runtime.spec import Stop
from turnloom.testing.contracts import (
    CODEC,
    BeliefStoreContract,
    BranchingContract,
    ClaimsContract,
    CopiesContract,
    EventLogContract,
    FenceContract,
    InboxContract,
    PlansContract,
    PrunerContract,
    RemovalsContract,
    ResultsContract,
    SnapshotsContract,
    TenantListContract,
    VerifierContract,
    event,
)
from turnloom.testing.contracts.facts import TENANT, key


class TestLog(EventLogContract):
    @asynccontextmanager
    async def fresh(self) -> AsyncGenerator[EventLog, None]:
        yield MemoryStore(CODEC).log


class TestBranching(BranchingContract):
    @asynccontextmanager
    async def fresh(self) -> AsyncGenerator[MemoryStore, None]:
        yield MemoryStore(CODEC)


class TestInbox(InboxContract):
    @asynccontextmanager
    async def fresh(self) -> AsyncGenerator[tuple[Any, EventLog], None]:
        store = MemoryStore(CODEC)
        yield store.inbox, store.log


class TestBeliefs(BeliefStoreContract):
    @asynccontextmanager
    async def fresh(self) -> AsyncGenerator[BeliefStore, None]:
        yield MemoryStore(CODEC).beliefs


class TestResults(ResultsContract):
    @asynccontextmanager
    async def fresh(self) -> AsyncGenerator[Results, None]:
        yield MemoryStore(CODEC).results


class TestPlans(PlansContract):
    @asynccontextmanager
    async def fresh(self) -> AsyncGenerator[Plans, None]:
        yield MemoryStore(CODEC).plans


class TestClaims(ClaimsContract):
    @asynccontextmanager
    async def fresh(self) -> AsyncGenerator[tuple[Any, Any], None]:
        store = MemoryStore(CODEC)
        yield store.claims, store.claims


class TestFences(FenceContract):
    @asynccontextmanager
    async def fresh(self) -> AsyncGenerator[Any, None]:
        yield MemoryStore(CODEC)


class TestVerifier(VerifierContract):
    @asynccontextmanager
    async def fresh(self) -> AsyncGenerator[tuple[Any, Any], None]:
        store = MemoryStore(CODEC)
        yield store.verifier, store


class TestSnapshots(SnapshotsContract):
    @asynccontextmanager
    async def fresh(self) -> AsyncGenerator[Any, None]:
        yield MemoryStore(CODEC).snapshots


class TestPruner(PrunerContract):
    @asynccontextmanager
    async def fresh(self) -> AsyncGenerator[Any, None]:
        yield MemoryStore(CODEC)


class TestRemovals(RemovalsContract):
    @asynccontextmanager
    async def fresh(self) -> AsyncGenerator[Any, None]:
        yield MemoryStore(CODEC)


class TestTenantList(TenantListContract):
    @asynccontextmanager
    async def fresh(self) -> AsyncGenerator[Any, None]:
        yield MemoryStore(CODEC)


class TestCopies(CopiesContract):
    @asynccontextmanager
    async def fresh(self) -> AsyncGenerator[tuple[Any, Any], None]:
        yield MemoryStore(CODEC), MemoryStore(CODEC)


async def test_an_event_for_another_place_is_refused() -> None:
    log = MemoryStore(CODEC).log
    with raising(UsageError, "'b'", "1"):
        await log.append(key("b"), [event("a", 1)], 0)
    with raising(UsageError, "seq 5"):
        await log.append(key("a"), [event("a", 5)], 0)
    assert not await log.runs(TENANT, 1)


async def test_a_busy_run_says_what_to_do() -> None:
    claims = MemoryStore(CODEC).claims
    async with claims.claim(key("a")):
        with raising(RunBusy, f"pid {os.getpid()}", "turnloom cancel"):
            async with claims.claim(key("a")):
                pass


async def test_a_closed_store_refuses_and_tells_who_waits() -> None:
    store = MemoryStore(CODEC)

    async def wait_for(source: AsyncIterator[object]) -> None:
        with pytest.raises(UsageError):
            await anext(source)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait_for, store.log.subscribe(key("a")))
        tasks.start_soon(wait_for, store.inbox.arrivals())
        await anyio.wait_all_tasks_blocked()
        await store.aclose()
        await store.aclose()
    for call in (
        store.log.append(key("a"), [], 0),
        store.log.read(key("a")),
        store.log.runs(TENANT, 1),
        store.log.named(TENANT, "a", 1),
        store.log.ends(key("a")),
        store.inbox.offer(key("a"), "1", Stop("ann")),
        store.inbox.pending(key("a")),
        store.claims.held(key("a")),
        store.snapshots.load(key("a")),
        store.snapshots.save(key("a"), 1, b""),
    ):
        with pytest.raises(UsageError):
            await call
