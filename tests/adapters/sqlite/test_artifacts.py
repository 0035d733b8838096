"""Artifacts in a SQLite file."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from tests.adapters.sqlite.test_contracts import two_stores
from weft.board.ports import ArtifactStore
from weft.testing.contracts import ArtifactStoreContract


class TestArtifacts(ArtifactStoreContract):
    @asynccontextmanager
    async def fresh(self) -> AsyncGenerator[ArtifactStore, None]:
        async with two_stores() as (store, _):
            yield store.artifacts


class _Across:
    """Writes through one store and reads through another, as two processes would."""

    def __init__(self, writer: ArtifactStore, reader: ArtifactStore) -> None:
        self.put = writer.put
        self.get = reader.get
        self.query = reader.query
        self.upcoming = reader.upcoming


class TestArtifactsAcrossStores(ArtifactStoreContract):
    @asynccontextmanager
    async def fresh(self) -> AsyncGenerator[ArtifactStore, None]:
        async with two_stores() as (store, other):
            yield _Across(store.artifacts, other.artifacts)
