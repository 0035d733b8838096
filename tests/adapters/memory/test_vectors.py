"""Collections in memory."""

import tracemalloc
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from turnloom.adapters.memory.vectors import MemoryVectors
from turnloom.assembly.ports import VectorSearch
from turnloom.assembly.service import EmbeddingSearch
from turnloom.assembly.spec.retrieval import Document, Matching, RetrievalResult, StoredDocument
from turnloom.errors import UsageError
from turnloom.testing import HashingEmbedder, InMemorySearch
from turnloom.testing.contracts import PruningContract, VectorSearchContract, WordsContract
from turnloom.testing.contracts.retrieval.samples import EMBEDDER, SPLITTER


class TestCollections(VectorSearchContract, WordsContract):
    @asynccontextmanager
    async def fresh(self, matching: Matching = "vector") -> AsyncGenerator[VectorSearch, None]:
        yield InMemorySearch(matching)


class TestStore(PruningContract):
    @asynccontextmanager
    async def fresh(self, matching: Matching = "vector") -> AsyncGenerator[VectorSearch, None]:
        yield EmbeddingSearch(MemoryVectors(), EMBEDDER, SPLITTER, matching)


class Pieces(MemoryVectors):
    """Notes how much is put in at once, and keeps nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes: list[int] = []

    async def replace(
        self, tenant: str, ids: Sequence[str], entries: Sequence[StoredDocument]
    ) -> int:
        self.sizes.append(sum(len(chunk.content) for each in entries for chunk in each.chunks))
        return 0


async def test_long_documents_are_put_in_by_pieces_in_little_memory() -> None:
    """Vectors as lists would take 8 kB each, twice."""
    store = Pieces()
    search = EmbeddingSearch(store, HashingEmbedder(), SPLITTER)
    documents = [Document(str(n), "\n\n".join(["x" * 400] * 1_000)) for n in range(6)]
    tracemalloc.start()
    done = await search.add(documents)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert done.chunks == 6_000 and len(store.sizes) == 3
    assert max(store.sizes) <= 1_000_000
    assert peak < 16_000_000


async def test_a_store_that_lists_nothing_cannot_be_pruned() -> None:
    class Plain:
        """A store of another version of the port."""

    store: Any = Plain()
    with pytest.raises(UsageError, match="having"):
        await EmbeddingSearch(store, EMBEDDER, SPLITTER).prune("/docs", lambda _: True)


async def test_seeds_fit_every_query_as_told() -> None:
    search = InMemorySearch()
    search.seed(("Cats purr.", 0.9), ("Dogs bark.", 0.4), ("Birds sing.", 0.9))
    search.seed(RetrievalResult("Fish swim.", 0.95, "fish", {"tenant": "acme"}))
    await search.add([Document("own", "what is this")])
    found = await search.search("what is this")
    assert [(each.source_id, each.score) for each in found] == [
        *(("own", 1.0), ("fish", 0.95), ("seed-1", 0.9), ("seed-3", 0.9)),
    ]
    assert await search.search("anything", 1) == [found[1]]
    assert await search.search("anything", filters={"tenant": "acme"}) == [found[1]]
    assert await search.search(" ") == []
    assert search.searches[1:3] == [
        ("anything", 1, None, None),
        ("anything", 5, None, {"tenant": "acme"}),
    ]
