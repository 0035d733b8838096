"""Contract suite for pruning collections."""

from turnloom.assembly.service import EmbeddingSearch
from turnloom.assembly.spec.retrieval import Document
from turnloom.testing.contracts.retrieval.samples import CollectionSuite, ids


class PruningContract(CollectionSuite):
    """The suite for `PrunableStore`, behind an `EmbeddingSearch`."""

    async def test_missing_documents_of_a_root_are_removed(self) -> None:
        """Pruning removes missing documents of one root and tenant only."""
        async with self.fresh() as search:
            assert isinstance(search, EmbeddingSearch)
            assert await search.prune("/docs", lambda _: False) == 0
            for root, id in (("/docs", "a"), ("/docs", "b"), ("/wiki", "c"), ("", "d")):
                document = Document(id, "red fish", {"path": id}, root=root)
                await search.add([document])
                await search.add([document], "acme")
            assert await search.prune("/doc", lambda _: False) == 0
            assert await search.prune("/docs", {"b"}.__contains__) == 1
            assert sorted(await ids(search, "red fish")) == ["b", "c", "d"]
            await search.add([Document("b", "red fish", root="/wiki")])
            assert await search.prune("/docs", lambda _: False) == 0
            assert await search.prune("/docs", lambda _: False, "acme") == 2
            assert await search.prune("/wiki", lambda _: False) == 2
            assert await ids(search, "red fish") == ["d"]
