"""Contracts of collections: add, search, filter."""

from typing import Any

import anyio

from turnloom.assembly.spec.retrieval import AddedDocuments, Document
from turnloom.errors import UsageError
from turnloom.testing.contracts.facts import refused
from turnloom.testing.contracts.retrieval.samples import (
    HOSTILE,
    QUERIES,
    CollectionSuite,
    agree,
    everything,
    ids,
    library,
)


class CollectionDocumentsContract(CollectionSuite):
    """Adding and removing documents."""

    async def test_the_same_again_changes_nothing(self) -> None:
        """Adding the same document again changes nothing, also within one call."""
        async with self.fresh() as search:
            documents = library(5)
            assert await search.add(documents) == AddedDocuments(5, 0, 0, 5)
            before = await search.search("cat sees moon", 50, 0)
            assert await search.add([*documents, documents[0]]) == AddedDocuments(0, 0, 5, 0)
            assert await search.search("cat sees moon", 50, 0) == before
            assert await search.add([]) == AddedDocuments()

    async def test_other_content_replaces_all_of_a_document(self) -> None:
        """Changed content replaces all chunks of a document."""
        async with self.fresh() as search:
            await search.add([Document("a", "red fish\n\nblue birds\n\ngreen frogs")])
            found = await search.search("blue birds")
            assert [(each.source_id, each.chunk, each.content) for each in found] == [
                ("a", 1, "blue birds")
            ]
            assert await search.add([Document("a", "red fish")]) == AddedDocuments(0, 1, 0, 1)
            assert await search.search("blue birds") == []
            assert await search.search("green frogs") == []
            assert await ids(search, "red fish") == ["a"]
            assert await search.add([Document("a", "")]) == AddedDocuments(0, 1, 0, 0)
            assert await ids(search, "red fish") == []

    async def test_removed_documents_are_gone(self) -> None:
        """Removed documents are not found until they are added again."""
        async with self.fresh() as search:
            await search.add(library(5))
            assert await search.remove(["d001", "d003", "nobody", "d001"]) == 2
            assert sorted(await ids(search, "the")) == ["d000", "d002", "d004"]
            assert await search.remove([]) == 0
            assert await search.add(library(5)) == AddedDocuments(2, 0, 3, 2)
            assert len(await ids(search, "the")) == 5

    async def test_chunks_of_one_document_have_numbers(self) -> None:
        """Chunks have numbers, which order equal scores of one document."""
        async with self.fresh() as search:
            await search.add([Document("b", "red fish\n\nred fish"), Document("a", "red fish")])
            found = await search.search("red fish")
            assert [(each.source_id, each.chunk) for each in found] == [
                *(("a", 0), ("b", 0), ("b", 1)),
            ]

    async def test_any_document_comes_back_as_it_was(self) -> None:
        """Ids, texts and metadata are returned unchanged."""
        metadata: dict[str, Any] = {
            "null": None,
            "numbers": [0, -1, 2**53 + 1, 0.1, -0.5e-9],
            "text": "line\nline \u2028 \0 \U0001f600 'quoted' \"twice\" \\ %s {}",
            "deep": {"a": [{"b": {"c": [None, 1, "走る"]}}]},
            "": "nameless",
        }
        async with self.fresh() as search:
            for n, word in enumerate(HOSTILE):
                text = f"number{n} {word} fish 'quoted' \"twice\" \\ %s {{}} 走る \U0001f600"
                await search.add([Document(word, text, metadata)])
                [found] = await search.search(text, 1, 0.9)
                assert (found.source_id, found.content) == (word, text)
                assert found.metadata == metadata

    async def test_invalid_documents_are_refused(self) -> None:
        """An invalid document is rejected, with all documents of the call."""
        bad: list[Any] = [
            Document("", "text"),
            Document("nul\0", "text"),
            Document("a", "half \ud800"),
            Document("a", "nul \0"),
            Document("a", 5),  # pyright: ignore[reportArgumentType]
            Document("a", "text", {"x": float("nan")}),
            Document("a", "text", {"x": (1, 2)}),
            Document("a", "text", {"x": object()}),
            Document("good", "another text"),
        ]
        async with self.fresh() as search:
            for document in bad:
                with refused(UsageError):
                    await search.add([Document("good", "red fish"), document])
            assert await ids(search, "red fish") == []

    async def test_adding_and_searching_at_once(self) -> None:
        """Concurrent adds lose and repeat nothing, and every search sees whole documents."""
        async with self.fresh() as search:

            async def add(first: int) -> None:
                for n in range(first, first + 5):
                    await search.add([Document(str(n), f"red fish {n}\n\nred fish {n}")])
                    await search.add([Document("shared", f"red fish {n}\n\nred fish {n}")])

            async def look() -> None:
                for _ in range(10):
                    found = await search.search("red fish", 100, 0)
                    sources = [each.source_id for each in found]
                    assert all(sources.count(source) == 2 for source in sources)
                    assert len({each.content for each in found if each.source_id == "shared"}) < 2

            async with anyio.create_task_group() as tasks:
                for first in (0, 5, 10):
                    tasks.start_soon(add, first)
                    tasks.start_soon(look)
            assert set(await ids(search, "red fish")) == {*map(str, range(15)), "shared"}

    async def test_a_closed_collection_refuses(self) -> None:
        """A closed collection rejects every call; closing it again does nothing."""
        async with self.fresh() as search:
            await search.add([Document("a", "red fish")])
            await search.aclose()
            await search.aclose()
            for call in (search.add([Document("b", "x")]), search.remove(["a"])):
                with refused(UsageError):
                    await call
            with refused(UsageError):
                await search.search("red fish")


class CollectionSearchContract(CollectionSuite):
    """Searching."""

    async def test_the_best_come_first(self) -> None:
        """An identical text scores 1; texts that share more words score higher."""
        async with self.fresh() as search:
            texts = {"a": "red fish swim", "b": "red fish sleep", "c": "blue birds sing"}
            await search.add(Document(id, text) for id, text in texts.items())
            found = await search.search("red fish swim", min_relevance=0)
            assert [each.source_id for each in found][:2] == ["a", "b"]
            assert found[0].score == 1.0 and found[0].content == "red fish swim"
            assert 1 > found[1].score > 0.3

    async def test_every_search_equals_a_comparison_with_everything(self) -> None:
        """A search returns the best k of all chunks, with equal scores ordered by source."""
        documents = library(210)
        async with self.fresh() as search:
            await search.add(documents)
            for query in QUERIES:
                wanted = await everything(documents, query)
                for top_k in (1, 3, 50, 500):
                    for floor in (0.0, 0.3, 0.7, 1.0):
                        found = await search.search(query, top_k, floor)
                        assert agree(found, wanted, top_k, floor), (query, top_k, floor)

    async def test_irrelevant_results_are_dropped(self) -> None:
        """Results below `min_relevance` are dropped; those equal to it are kept."""
        async with self.fresh() as search:
            await search.add([Document("a", "red fish swim"), Document("b", "red fish sleep")])
            [_, second] = await search.search("red fish swim", min_relevance=0.1)
            assert len(await search.search("red fish swim", min_relevance=second.score)) == 2
            assert len(await search.search("red fish swim", min_relevance=1)) == 1

    async def test_nothing_is_found_where_nothing_is(self) -> None:
        """An empty collection, a blank query and a query without words find nothing, without an
        error."""
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

    async def test_invalid_arguments_are_refused(self) -> None:
        """Invalid arguments are rejected with `UsageError`."""
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

    async def test_any_characters_in_a_query(self) -> None:
        """Queries may have any characters."""
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
        """Changes to the added and the returned objects do not reach the collection."""
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


class FilteringContract(CollectionSuite):
    """Filtering."""

    async def test_filtered_searches_equal_a_comparison_with_passing_documents(self) -> None:
        """A search returns the best k of the chunks that pass the filters, however few pass."""
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
        """Filters compare JSON values; a list matches by each of its elements."""
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
        """Any string is a valid key or value, and matches only itself."""
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

    async def test_filters_follow_changed_metadata(self) -> None:
        """Changed metadata replaces the document."""
        async with self.fresh() as search:
            await search.add([Document("a", "red fish", {"tenant": "t1"})])
            await search.add([Document("a", "red fish", {"tenant": "t2"})])
            assert await ids(search, "red fish", filters={"tenant": "t1"}) == []
            assert await ids(search, "red fish", filters={"tenant": "t2"}) == ["a"]


class WordsContract(CollectionSuite):
    """The suite for collections that match by keyword; a separate suite, as this is optional."""

    async def test_keywords_ignore_case(self) -> None:
        """Keywords ignore case: a chunk with all of them scores 1, and rarer ones weigh more."""
        async with self.fresh("keyword") as search:
            texts = {"a": "The pump X-200 leaks.", "b": "The pump hums.", "c": "The Moon."}
            await search.add(Document(id, text) for id, text in texts.items())
            found = await search.search("pump x-200", min_relevance=0.01)
            assert [each.source_id for each in found] == ["a", "b"]
            assert found[0].score == 1.0 and 0 < found[1].score < 0.5
            assert await ids(search, "MOON", min_relevance=0.9) == ["c"]
            assert await ids(search, "pumps", min_relevance=0.01) == []
            for query in ('" OR * NEAR(', "_", "__ __", "content:", "-", "…"):
                assert await ids(search, query, min_relevance=0.01) == [], query

    async def test_keywords_anywhere_and_in_any_alphabet(self) -> None:
        """Keywords are found late in a text, in any alphabet, and next to an underscore."""
        async with self.fresh("keyword") as search:
            long = " ".join(f"word{n}" for n in range(200))
            texts = {"a": f"{long} needle", "b": "Die Straße ist lang.", "c": "The ﬁnal draft_plan"}
            texts["d"] = "ΟΔΥΣΣΕΥΣ sails home."
            await search.add(Document(id, text) for id, text in texts.items())
            asked = {"needle": "a", "Straße": "b", "STRAßE": "b", "ﬁnal": "c", "plan": "c"}
            for query, id in {**asked, "draft_plan": "c", "οδυσσευς": "d"}.items():
                assert await ids(search, query, min_relevance=0.9) == [id], query

    async def test_filtered_chunks_do_not_weigh_words(self) -> None:
        """The weight of a word depends only on chunks that pass the filters."""
        asked: dict[str, Any] = {"filters": {"tenant": "t1"}, "top_k": 100, "min_relevance": 0.01}
        async with self.fresh("keyword") as search:
            await search.add(library(60))
            before = await search.search("cat sees moon", **asked)
            hidden = [Document(f"x{n}", "cat cat moon", {"tenant": "t9"}) for n in range(50)]
            await search.add(hidden)
            assert before and await search.search("cat sees moon", **asked) == before

    async def test_hybrid_scores(self) -> None:
        """A hybrid score is at least the better of the vector and the keyword score."""
        async with self.fresh("hybrid") as both, self.fresh() as meaning:
            async with self.fresh("keyword") as words:
                for search in (both, meaning, words):
                    await search.add(library(60))
                found = {each.source_id: each.score for each in await both.search("cat", 60, 0)}
                for search in (meaning, words):
                    for each in await search.search("cat", 60, 0.01):
                        assert found[each.source_id] >= each.score - 1e-5
                assert max(found.values()) <= 1

    async def test_keywords_of_removed_documents_are_not_found(self) -> None:
        """Keywords of replaced and removed documents are not found."""
        async with self.fresh("keyword") as search:
            await search.add([Document("a", "red fish"), Document("b", "red fish")])
            await search.add([Document("a", "blue birds")])
            await search.remove(["b"])
            assert await ids(search, "fish", min_relevance=0.01) == []
            assert await ids(search, "birds", min_relevance=0.01) == ["a"]
