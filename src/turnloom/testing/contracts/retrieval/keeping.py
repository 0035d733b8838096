"""Documents are kept once, replaced whole, and found from then on."""

from typing import Any

import anyio

from turnloom.assembly.spec.retrieval import Added, Document
from turnloom.errors import UsageError
from turnloom.testing.contracts.facts import refused
from turnloom.testing.contracts.retrieval.samples import HOSTILE, Collecting, ids, library


class KeepingContract(Collecting):
    """What becomes of documents."""

    async def test_the_same_again_changes_nothing(self) -> None:
        """Adding is idempotent by id and content, also within one call."""
        async with self.fresh() as search:
            documents = library(5)
            assert await search.add(documents) == Added(5, 0, 0, 5)
            before = await search.search("cat sees moon", 50, 0)
            assert await search.add([*documents, documents[0]]) == Added(0, 0, 5, 0)
            assert await search.search("cat sees moon", 50, 0) == before
            assert await search.add([]) == Added()

    async def test_other_content_replaces_all_of_a_document(self) -> None:
        """No chunk of what it was is found any more."""
        async with self.fresh() as search:
            await search.add([Document("a", "red fish\n\nblue birds\n\ngreen frogs")])
            found = await search.search("blue birds")
            assert [(each.source_id, each.chunk, each.content) for each in found] == [
                ("a", 1, "blue birds")
            ]
            assert await search.add([Document("a", "red fish")]) == Added(0, 1, 0, 1)
            assert await search.search("blue birds") == []
            assert await search.search("green frogs") == []
            assert await ids(search, "red fish") == ["a"]
            assert await search.add([Document("a", "")]) == Added(0, 1, 0, 0)
            assert await ids(search, "red fish") == []

    async def test_removed_documents_are_gone(self) -> None:
        """Until they are added again."""
        async with self.fresh() as search:
            await search.add(library(5))
            assert await search.remove(["d001", "d003", "nobody", "d001"]) == 2
            assert sorted(await ids(search, "the")) == ["d000", "d002", "d004"]
            assert await search.remove([]) == 0
            assert await search.add(library(5)) == Added(2, 0, 3, 2)
            assert len(await ids(search, "the")) == 5

    async def test_chunks_of_one_document_are_told_apart(self) -> None:
        """By their number; equally good ones come in their order."""
        async with self.fresh() as search:
            await search.add([Document("b", "red fish\n\nred fish"), Document("a", "red fish")])
            found = await search.search("red fish")
            assert [(each.source_id, each.chunk) for each in found] == [
                *(("a", 0), ("b", 0), ("b", 1)),
            ]

    async def test_any_document_comes_back_as_it_was(self) -> None:
        """Ids, texts and metadata are kept to the character."""
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

    async def test_what_cannot_be_kept_is_refused(self) -> None:
        """And nothing of the same call is kept."""
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
        """Nothing is lost, nothing comes twice, and every search sees whole documents."""
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
        """Everything, and closing again changes nothing."""
        async with self.fresh() as search:
            await search.add([Document("a", "red fish")])
            await search.aclose()
            await search.aclose()
            for call in (search.add([Document("b", "x")]), search.remove(["a"])):
                with refused(UsageError):
                    await call
            with refused(UsageError):
                await search.search("red fish")
