"""The store in a SQLite file passes every suite."""

import sqlite3
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

from tests.support.world import Refitted
from turnloom.adapters.sqlite import SqliteStore
from turnloom.adapters.sqlite.log import SqliteLog
from turnloom.flow.ports import Results
from turnloom.guards.ports import BeliefStore
from turnloom.log.ports import EventLog
from turnloom.runtime.ports import Plans
from turnloom.testing.contracts import (
    CODEC,
    BeliefStoreContract,
    BranchingContract,
    ClaimsContract,
    CopiesContract,
    EventLogContract,
    FenceContract,
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


@asynccontextmanager
async def two_stores() -> AsyncGenerator[tuple[SqliteStore, SqliteStore], None]:
    with tempfile.TemporaryDirectory() as folder:
        stores = tuple(SqliteStore(Path(folder, "new", "turnloom.db"), CODEC) for _ in range(2))
        try:
            yield stores[0], stores[1]
        finally:
            for store in stores:
                await store.aclose()


class TestLog(EventLogContract):
    @asynccontextmanager
    async def fresh(self) -> AsyncGenerator[EventLog, None]:
        async with two_stores() as (store, _):
            yield store.log


class TestShared(SharedStoreContract):
    @asynccontextmanager
    async def fresh(self) -> AsyncGenerator[Any, None]:
        with tempfile.TemporaryDirectory() as folder:
            yield lambda: SqliteStore(Path(folder, "turnloom.db"), CODEC)


class _Across:
    """Writes through one store and reads through another, as two processes would."""

    def __init__(self, writer: SqliteLog, reader: SqliteLog) -> None:
        self.append = writer.append
        self.read = reader.read
        self.subscribe = reader.subscribe
        self.ends = reader.ends
        self.runs = reader.runs
        self.named = reader.named
        self.branch = writer.branch
        self.batch_end = reader.batch_end


class TestLogAcrossStores(EventLogContract):
    @asynccontextmanager
    async def fresh(self) -> AsyncGenerator[EventLog, None]:
        async with two_stores() as (store, other):
            yield _Across(store.log, other.log)


class TestBranching(BranchingContract):
    @asynccontextmanager
    async def fresh(self) -> AsyncGenerator[Any, None]:
        async with two_stores() as (store, _):
            yield store


class TestBranchingAcrossStores(BranchingContract):
    """Runs branch in one store, and everything else happens in another."""

    @asynccontextmanager
    async def fresh(self) -> AsyncGenerator[Any, None]:
        async with two_stores() as (store, other):
            log = _Across(other.log, other.log)
            log.branch = store.log.branch
            yield Refitted(other, log=log)


class TestInbox(InboxContract):
    @asynccontextmanager
    async def fresh(self) -> AsyncGenerator[tuple[Any, EventLog], None]:
        async with two_stores() as (store, _):
            yield store.inbox, store.log


class TestInboxFromAnotherStore(InboxContract):
    """Mail comes through one store, and events are written through another."""

    @asynccontextmanager
    async def fresh(self) -> AsyncGenerator[tuple[Any, EventLog], None]:
        async with two_stores() as (store, other):
            yield store.inbox, other.log


class TestBeliefs(BeliefStoreContract):
    @asynccontextmanager
    async def fresh(self) -> AsyncGenerator[BeliefStore, None]:
        async with two_stores() as (store, _):
            yield store.beliefs


class TestResults(ResultsContract):
    @asynccontextmanager
    async def fresh(self) -> AsyncGenerator[Results, None]:
        async with two_stores() as (store, _):
            yield store.results


class TestPlans(PlansContract):
    @asynccontextmanager
    async def fresh(self) -> AsyncGenerator[Plans, None]:
        async with two_stores() as (store, _):
            yield store.plans


class TestClaims(ClaimsContract):
    @asynccontextmanager
    async def fresh(self) -> AsyncGenerator[tuple[Any, Any], None]:
        async with two_stores() as (store, other):
            yield store.claims, other.claims


class TestFences(FenceContract):
    @asynccontextmanager
    async def fresh(self) -> AsyncGenerator[Any, None]:
        async with two_stores() as (store, _):
            yield store


class TestVerifier(VerifierContract):
    @asynccontextmanager
    async def fresh(self) -> AsyncGenerator[tuple[Any, Any], None]:
        async with two_stores() as (store, _):
            yield store.verifier, store


class TestSnapshots(SnapshotsContract):
    @asynccontextmanager
    async def fresh(self) -> AsyncGenerator[Any, None]:
        async with two_stores() as (store, _):
            yield store.snapshots


class TestPruner(PrunerContract):
    @asynccontextmanager
    async def fresh(self) -> AsyncGenerator[Any, None]:
        async with two_stores() as (store, _):
            yield store


class TestRemovals(RemovalsContract):
    @asynccontextmanager
    async def fresh(self) -> AsyncGenerator[Any, None]:
        async with two_stores() as (store, _):
            yield store


class TestTenantList(TenantListContract):
    @asynccontextmanager
    async def fresh(self) -> AsyncGenerator[Any, None]:
        async with two_stores() as (store, _):
            yield store


class TestCopies(CopiesContract):
    @asynccontextmanager
    async def fresh(self) -> AsyncGenerator[tuple[Any, Any], None]:
        async with two_stores() as (source, _), two_stores() as (target, _):
            yield source, target


class TestMigrator(MigratorContract):
    path: Path

    @asynccontextmanager
    async def fresh(self) -> AsyncGenerator[Any, None]:
        with tempfile.TemporaryDirectory() as folder:
            self.path = Path(folder, "turnloom.db")
            yield lambda: SqliteStore(self.path, CODEC)

    async def pretend(self, version: int) -> None:
        with closing(sqlite3.connect(self.path)) as file:
            file.execute(f"PRAGMA user_version = {version}")
