"""Filters are part of the search: the best of what passes, not what passes of the best."""

from typing import Any

from turnloom.assembly.spec.retrieval import Document
from turnloom.testing.contracts.retrieval.samples import (
    HOSTILE,
    QUERIES,
    Collecting,
    agree,
    everything,
    ids,
    library,
)


class FilteringContract(Collecting):
    """What filters let through."""

    async def test_filtered_searches_equal_a_comparison_with_what_passes(self) -> None:
        """However few pass, the best k of them are found."""
        documents = library(210)
        filters: list[dict[str, Any]] = [
            {"tenant": "t1"},
            {"tenant": ["t1", "t4"]},
            {"tenant": "t2", "year": 2001},
            {"tenant": "t2", "year": [2001, 2002], "draft": True},
            {"tenant": "nobody"},
            {"tenant": []},
            {},
        ]
        async with self.fresh() as search:
            await search.add(documents)
            for query in QUERIES:
                for asked in filters:
                    wanted = await everything(documents, query, asked)
                    for top_k in (1, 4, 100):
                        found = await search.search(query, top_k, 0.0, asked)
                        assert agree(found, wanted, top_k), (query, asked, top_k)

    async def test_values_are_compared_as_json(self) -> None:
        """Numbers with numbers, texts with texts; a list has each of its elements."""
        values: dict[str, Any] = {
            "one": 1,
            "true": True,
            "text": "1",
            "half": 0.5,
            "null": None,
            "list": [1, "x", None],
            "object": {"a": 1},
            "empty": [],
        }
        questions: list[tuple[Any, list[str]]] = [
            (1, ["list", "one"]),
            (1.0, ["list", "one"]),
            (True, ["true"]),
            ("1", ["text"]),
            (0.5, ["half"]),
            (None, ["list", "null"]),
            ("x", ["list"]),
            (["x", 0.5, "none"], ["half", "list"]),
            (("x", True), ["list", "true"]),
            ({"x"}, ["list"]),
            ("X", []),
        ]
        async with self.fresh() as search:
            documents = [Document(id, "red fish", {"v": value}) for id, value in values.items()]
            await search.add([*documents, Document("without", "red fish")])
            for asked, wanted in questions:
                assert await ids(search, "red fish", filters={"v": asked}) == wanted, asked
            assert len(await ids(search, "red fish")) == 9

    async def test_any_text_is_a_key_and_a_value(self) -> None:
        """Names are texts, whatever they look like and however long, and none reaches another."""
        words = (*HOSTILE, "x" * 5000, f"{'x' * 5000}y", "a.b", "a=b")
        async with self.fresh() as search:
            documents = [
                Document(word, "red fish", {word: "v", "word": word, "other": "v"})
                for word in words
            ]
            await search.add(documents)
            for word in words:
                for asked in ({word: "v"}, {"word": word}, {word: "v", "word": word}):
                    assert await ids(search, "red fish", filters=asked) == [word]

    async def test_filters_follow_what_documents_become(self) -> None:
        """Other metadata is other content."""
        async with self.fresh() as search:
            await search.add([Document("a", "red fish", {"tenant": "t1"})])
            await search.add([Document("a", "red fish", {"tenant": "t2"})])
            assert await ids(search, "red fish", filters={"tenant": "t1"}) == []
            assert await ids(search, "red fish", filters={"tenant": "t2"}) == ["a"]
