"""The custom store passes the suites of the built-in stores."""

from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from journal_store import JournalStore

from turnloom.testing.contracts import (
    CODEC,
    ArtifactStoreContract,
    BeliefStoreContract,
    ClaimsContract,
    EventLogContract,
    FenceContract,
    InboxContract,
    PlansContract,
    ResultsContract,
    SharedStoreContract,
    SnapshotsContract,
)


@asynccontextmanager
async def opened() -> AsyncGenerator[JournalStore]:
    with TemporaryDirectory() as folder:
        async with aclosing(JournalStore(Path(folder), CODEC)) as store:
            yield store


class TestLog(EventLogContract):
    @asynccontextmanager
    async def fresh(self) -> AsyncGenerator[Any]:
        async with opened() as store:
            yield store.log


class TestShared(SharedStoreContract):
    @asynccontextmanager
    async def fresh(self) -> AsyncGenerator[Any]:
        with TemporaryDirectory() as folder:
            yield lambda: JournalStore(Path(folder), CODEC)


class TestInbox(InboxContract):
    @asynccontextmanager
    async def fresh(self) -> AsyncGenerator[Any]:
        async with opened() as store:
            yield store.inbox, store.log


class TestClaims(ClaimsContract):
    @asynccontextmanager
    async def fresh(self) -> AsyncGenerator[Any]:
        with TemporaryDirectory() as folder:
            ours, theirs = JournalStore(folder), JournalStore(folder)
            async with aclosing(ours), aclosing(theirs):
                yield ours.claims, theirs.claims


class TestFences(FenceContract):
    @asynccontextmanager
    async def fresh(self) -> AsyncGenerator[Any]:
        async with opened() as store:
            yield store


class TestSnapshots(SnapshotsContract):
    @asynccontextmanager
    async def fresh(self) -> AsyncGenerator[Any]:
        async with opened() as store:
            yield store.snapshots


class TestPlans(PlansContract):
    @asynccontextmanager
    async def fresh(self) -> AsyncGenerator[Any]:
        async with opened() as store:
            yield store.plans


class TestResults(ResultsContract):
    @asynccontextmanager
    async def fresh(self) -> AsyncGenerator[Any]:
        async with opened() as store:
            yield store.results


class TestBeliefs(BeliefStoreContract):
    @asynccontextmanager
    async def fresh(self) -> AsyncGenerator[Any]:
        async with opened() as store:
            yield store.beliefs


class TestArtifacts(ArtifactStoreContract):
    @asynccontextmanager
    async def fresh(self) -> AsyncGenerator[Any]:
        async with opened() as store:
            yield store.artifacts
