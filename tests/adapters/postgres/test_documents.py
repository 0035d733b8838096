"""Documents in PostgreSQL."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.support.documents import into_postgres
from turnloom.adapters.postgres import PostgresDocuments
from turnloom.testing.contracts import DocumentStoreContract
from turnloom.testing.contracts.documents import Put
from turnloom.variables.ports import DocumentStore


class TestDocuments(DocumentStoreContract):
    @pytest.fixture(autouse=True)
    def _server(self, postgres_url: str) -> None:
        self.url = postgres_url

    @asynccontextmanager
    async def fresh(self) -> AsyncGenerator[tuple[DocumentStore, Put], None]:
        async def put(
            schema: str | None, table: str, documents: Sequence[Mapping[str, Any]]
        ) -> None:
            await into_postgres(self.url, schema, table, documents)

        store = PostgresDocuments(self.url)
        yield store, put
        await store.aclose()
