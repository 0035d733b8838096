"""A search finds what fits best, and nothing when nothing is asked."""

from typing import Any

from turnloom.assembly.spec.retrieval import Document
from turnloom.errors import UsageError
from turnloom.testing.contracts.facts import refused
from turnloom.testing.contracts.retrieval.samples import (
    QUERIES,
    Collecting,
    agree,
    everything,
    ids,
    library,
)


class FindingContract(Collecting):
    """What searches find."""

    async def test_the_best_come_first(self) -> None:
        """The very text is worth 1, what shares more words is better."""
        async with self.fresh() as search:
            texts = {"a": "red fish swim", "b": "red fish sleep", "c": "blue birds sing"}
            await search.add(Document(id, text) for id, text in texts.items())
            found = await search.search("red fish swim", min_relevance=0)
            assert [each.source_id for each in found][:2] == ["a", "b"]
            assert found[0].score == 1.0 and found[0].content == "red fish swim"
            assert 1 > found[1].score > 0.3

    async def test_every_search_equals_a_comparison_with_everything(self) -> None:
        """The best k of all, in order; equally good ones by the order of their sources."""
        documents = library(210)
        async with self.fresh() as search:
            await search.add(documents)
            for query in QUERIES:
                wanted = await everything(documents, query)
                for top_k in (1, 3, 50, 500):
                    for floor in (0.0, 0.3, 0.7, 1.0):
                        found = await search.search(query, top_k, floor)
                        assert agree(found, wanted, top_k, floor), (query, top_k, floor)

    async def test_what_is_not_relevant_enough_is_dropped(self) -> None:
        """The floor counts as enough itself."""
        async with self.fresh() as search:
            await search.add([Document("a", "red fish swim"), Document("b", "red fish sleep")])
            [_, second] = await search.search("red fish swim", min_relevance=0.1)
            assert len(await search.search("red fish swim", min_relevance=second.score)) == 2
            assert len(await search.search("red fish swim", min_relevance=1)) == 1

    async def test_nothing_is_found_where_nothing_is(self) -> None:
        """An empty collection, a blank query and a query without words are no errors."""
        async with self.fresh() as search:
            assert await search.search("anything", min_relevance=0) == []
            assert await search.search("anything", filters={"x": 1}) == []
            assert getattr(await search.search("anything"), "is_empty", True)
            await search.add([Document("a", "red fish"), Document("blank", " \n\n "), _empty()])
            for query in ("", " ", "\n\t", "!?", "…"):
                assert await search.search(query, min_relevance=0) == [], query
            found = await search.search("red fish", filters={"x": 1})
            assert found == [] and not getattr(found, "is_empty", False)
            assert await ids(search, "red fish") == ["a"]

    async def test_nonsense_is_refused(self) -> None:
        """With an error that is the caller's, and before anything is looked for."""
        nonsense: list[dict[str, Any]] = [
            *({"top_k": each} for each in (0, -1, 1.5, True, "5", None)),
            *({"min_relevance": each} for each in (-0.1, 1.1, float("nan"), True, "0.5")),
            *({"query": each} for each in (None, 5, b"bytes", ["a"])),
            *({"filters": each} for each in ("x", ["x"], {"": 1}, {5: 1}, {"a\0": 1})),
            *({"filters": {"x": each}} for each in ({"$gt": 1}, [[1]], object(), float("nan"))),
        ]
        async with self.fresh() as search:
            for asked in nonsense:
                words: dict[str, Any] = {"query": "red", **asked}
                with refused(UsageError):
                    await search.search(**words)

    async def test_any_query_is_a_query(self) -> None:
        """Odd characters find what they find, and break nothing."""
        async with self.fresh() as search:
            await search.add([Document("a", "red fish")])
            for query in (
                "red\0fish",
                "red \ud800",
                'red "fish',
                "red*",
                "red' OR 1=1 --",
                "r" * 9999,
            ):
                assert await ids(search, query) in ([], ["a"]), query
            assert await ids(search, "red", top_k=10**30) == ["a"]

    async def test_results_are_copies(self) -> None:
        """Neither what was given nor what was got is what is kept."""
        metadata = {"tags": ["x"]}
        async with self.fresh() as search:
            await search.add([Document("a", "red fish", metadata)])
            metadata["tags"].append("y")
            [found] = await search.search("red fish")
            found.metadata["tags"].append("z")
            [again] = await search.search("red fish")
            assert again.metadata == {"tags": ["x"]}


def _empty() -> Document:
    return Document("empty", "")
