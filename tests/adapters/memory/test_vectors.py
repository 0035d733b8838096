"""Collections in memory."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from turnloom.assembly.ports import VectorSearch
from turnloom.assembly.spec.retrieval import Document, Matching, RetrievalResult
from turnloom.testing import InMemorySearch
from turnloom.testing.contracts import VectorSearchContract, WordsContract


class TestCollections(VectorSearchContract, WordsContract):
    @asynccontextmanager
    async def fresh(self, matching: Matching = "vector") -> AsyncGenerator[VectorSearch, None]:
        yield InMemorySearch(matching)


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
