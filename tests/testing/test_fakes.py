"""The fakes that ship do what the real things do."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from weft.testing import FakeDocuments
from weft.testing.contracts import DocumentStoreContract
from weft.testing.contracts.documents import Put
from weft.variables.ports import DocumentStore


class TestFakeDocuments(DocumentStoreContract):
    @asynccontextmanager
    async def fresh(self) -> AsyncGenerator[tuple[DocumentStore, Put], None]:
        async def put(
            database: str | None, collection: str, documents: Sequence[Mapping[str, Any]]
        ) -> None:
            store.add(collection, *documents, database=database)

        store = FakeDocuments()
        yield store, put
