"""The store in PostgreSQL passes every suite."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.adapters.postgres.test_trouble import execute
from tests.support.world import Refitted
from turnloom.adapters.postgres import PostgresStore
from turnloom.adapters.postgres.log import PostgresLog
from turnloom.flow.ports import Results
from turnloom.guards.ports import BeliefStore
from turnloom.log.ports import EventLog
from turnloom.runtime.ports import Backlog, Plans
from turnloom.testing.contracts import (
    CODEC,
    BacklogContract,
    BeliefStoreContract,
    BranchingContract,
    ClaimsContract,
    CopiesContract,
    EventLogContract,
    FenceContract,
    FollowingContract,
    InboxContract,
    MigratorContract,
    PlansContract,
    PrunerContract,
    RemovalsContract,
    ResultsContract,
    SharedStoreContract,
    SnapshotsContract,
    TenantListContract,
    VerifierContract,
)

pytestmark = pytest.mark.doors


class _Fresh:
    """Stores in a database that is empty at first."""

    url: str

    @pytest.fixture(autouse=True)
    def _server(self, postgres_url: str) -> None:
        self.url = postgres_url

    @asynccontextmanager
    async def stores(self) -> AsyncGenerator[tuple[PostgresStore, PostgresStore], None]:
        stores = tuple(PostgresStore(self.url, CODEC) for _ in range(2))
        try:
            yield stores[0], stores[1]
        finally:
            for store in stores:
                await store.aclose()


class TestLog(_Fresh, EventLogContract):
    @asynccontextmanager
    async def fresh(self) -> AsyncGenerator[EventLog, None]:
        async with self.stores() as (store, _):
            yield store.log


class TestShared(_Fresh, SharedStoreContract):
    @asynccontextmanager
    async def fresh(self) -> AsyncGenerator[Any, None]:
        yield lambda: PostgresStore(self.url, CODEC)


class _Across:
    """Writes through one store and reads through another, as two processes would."""

    def __init__(self, writer: PostgresLog, reader: PostgresLog) -> None:
        self.append = writer.append
        self.read = reader.read
        self.subscribe = reader.subscribe
        self.ends = reader.ends
        self.runs = reader.runs
        self.named = reader.named
        self.branch = writer.branch
        self.batch_end = reader.batch_end


class TestLogAcrossStores(_Fresh, EventLogContract):
    @asynccontextmanager
    async def fresh(self) -> AsyncGenerator[EventLog, None]:
        async with self.stores() as (store, other):
            yield _Across(store.log, other.log)


class TestBranching(_Fresh, BranchingContract):
    @asynccontextmanager
    async def fresh(self) -> AsyncGenerator[Any, None]:
        async with self.stores() as (store, _):
            yield store


class TestBranchingAcrossStores(_Fresh, BranchingContract):
    """Runs branch in one store, and everything else happens in another."""

    @asynccontextmanager
    async def fresh(self) -> AsyncGenerator[Any, None]:
        async with self.stores() as (store, other):
            log = _Across(other.log, other.log)
            log.branch = store.log.branch
            yield Refitted(other, log=log)


class TestInbox(_Fresh, InboxContract):
    @asynccontextmanager
    async def fresh(self) -> AsyncGenerator[tuple[Any, EventLog], None]:
        async with self.stores() as (store, _):
            yield store.inbox, store.log


class TestInboxFromAnotherStore(_Fresh, InboxContract):
    """Mail comes through one store, and events are written through another."""

    @asynccontextmanager
    async def fresh(self) -> AsyncGenerator[tuple[Any, EventLog], None]:
        async with self.stores() as (store, other):
            yield store.inbox, other.log


class TestBeliefs(_Fresh, BeliefStoreContract):
    @asynccontextmanager
    async def fresh(self) -> AsyncGenerator[BeliefStore, None]:
        async with self.stores() as (store, _):
            yield store.beliefs


class TestResults(_Fresh, ResultsContract):
    @asynccontextmanager
    async def fresh(self) -> AsyncGenerator[Results, None]:
        async with self.stores() as (store, _):
            yield store.results


class TestPlans(_Fresh, PlansContract):
    @asynccontextmanager
    async def fresh(self) -> AsyncGenerator[Plans, None]:
        async with self.stores() as (store, _):
            yield store.plans


class TestClaims(_Fresh, ClaimsContract):
    @asynccontextmanager
    async def fresh(self) -> AsyncGenerator[tuple[Any, Any], None]:
        async with self.stores() as (store, other):
            yield store.claims, other.claims


class TestFences(_Fresh, FenceContract):
    @asynccontextmanager
    async def fresh(self) -> AsyncGenerator[Any, None]:
        async with self.stores() as (store, _):
            yield store


class TestVerifier(_Fresh, VerifierContract):
    @asynccontextmanager
    async def fresh(self) -> AsyncGenerator[tuple[Any, Any], None]:
        async with self.stores() as (store, _):
            yield store.verifier, store


class TestSnapshots(_Fresh, SnapshotsContract):
    @asynccontextmanager
    async def fresh(self) -> AsyncGenerator[Any, None]:
        async with self.stores() as (store, _):
            yield store.snapshots


class TestPruner(_Fresh, PrunerContract):
    @asynccontextmanager
    async def fresh(self) -> AsyncGenerator[Any, None]:
        async with self.stores() as (store, _):
            yield store


class TestFollowing(_Fresh, FollowingContract):
    """One process appends, and another reads the board."""

    @asynccontextmanager
    async def fresh(self) -> AsyncGenerator[tuple[EventLog, Any], None]:
        async with self.stores() as (store, other):
            yield store.log, other.artifacts


class TestRemovals(_Fresh, RemovalsContract):
    @asynccontextmanager
    async def fresh(self) -> AsyncGenerator[Any, None]:
        async with self.stores() as (store, _):
            yield store


class TestTenantList(_Fresh, TenantListContract):
    @asynccontextmanager
    async def fresh(self) -> AsyncGenerator[Any, None]:
        async with self.stores() as (store, _):
            yield store


class TestCopies(_Fresh, CopiesContract):
    @asynccontextmanager
    async def fresh(self) -> AsyncGenerator[tuple[Any, Any], None]:
        await execute(self.url, "CREATE SCHEMA elsewhere")
        elsewhere = f"{self.url}?options=-csearch_path%3Delsewhere"
        async with self.stores() as (source, _):
            target = PostgresStore(elsewhere, CODEC)
            try:
                yield source, target
            finally:
                await target.aclose()


class TestMigrator(_Fresh, MigratorContract):
    @asynccontextmanager
    async def fresh(self) -> AsyncGenerator[Any, None]:
        yield lambda: PostgresStore(self.url, CODEC)

    async def pretend(self, version: int) -> None:
        await execute(self.url, f"UPDATE turnloom_schema SET version = {version}")


class TestBacklog(_Fresh, BacklogContract):
    @asynccontextmanager
    async def fresh(self) -> AsyncGenerator[tuple[PostgresStore, Backlog], None]:
        async with self.stores() as (store, _):
            yield store, store.backlog
