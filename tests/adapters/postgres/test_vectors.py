"""Collections in PostgreSQL."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from weft.adapters.postgres import PostgresVectors
from weft.assembly.ports import VectorSearch
from weft.assembly.service import EmbeddingSearch
from weft.assembly.service.retrieval import space_of
from weft.assembly.spec.retrieval import Matching
from weft.testing.contracts import VectorSearchContract
from weft.testing.contracts.retrieval.samples import EMBEDDER, SPLITTER


def collection(url: str, name: str = "library", *, exact: bool = False) -> EmbeddingSearch:
    store = PostgresVectors(url, name, space_of(EMBEDDER), exact=exact)
    return EmbeddingSearch(store, EMBEDDER, SPLITTER)


class TestIndexed(VectorSearchContract):
    exact = False

    @pytest.fixture(autouse=True)
    def _server(self, postgres_url: str) -> None:
        self.url = postgres_url

    @asynccontextmanager
    async def fresh(self, matching: Matching = "vector") -> AsyncGenerator[VectorSearch, None]:
        search = collection(self.url, exact=self.exact)
        yield search
        await search.aclose()


class TestExact(TestIndexed):
    exact = True
