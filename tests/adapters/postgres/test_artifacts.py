"""Artifacts in PostgreSQL."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from weft.adapters.postgres import PostgresArtifacts
from weft.board.ports import ArtifactStore
from weft.testing.contracts import ArtifactStoreContract


class TestArtifacts(ArtifactStoreContract):
    @pytest.fixture(autouse=True)
    def _server(self, postgres_url: str) -> None:
        self.url = postgres_url

    @asynccontextmanager
    async def fresh(self) -> AsyncGenerator[ArtifactStore, None]:
        store = PostgresArtifacts(self.url)
        yield store
        await store.aclose()
