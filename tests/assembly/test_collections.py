"""Collections as they are declared, filled, searched and registered."""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from tests.support.world import PATIENCE
from turnloom import (
    Chunking,
    Document,
    Loom,
    RagCollection,
    RetrievalResult,
    Task,
    artifact_type,
    from_retrieval,
)
from turnloom.adapters.memory import MemoryVectors
from turnloom.assembly.logic.retrieval import (
    blend,
    facts_of,
    prepare,
    read_filters,
    unit,
    weigh,
)
from turnloom.assembly.service import EmbeddingSearch
from turnloom.assembly.spec.retrieval import AddedDocuments
from turnloom.errors import UsageError
from turnloom.testing import HashingEmbedder, InMemorySearch, ParagraphSplitter


class ResearchLibrary(RagCollection):
    """Papers."""


@artifact_type(name="library.Question")
class Question(BaseModel):
    """What somebody looks something up for."""


# ------------------------------------------------------------------ declared


def test_a_collection_is_called_as_its_class_unless_it_says_otherwise() -> None:
    class Named(RagCollection):
        name = "papers"
        chunking = Chunking(tokens=100, overlap=0)
        matching = "hybrid"

    class Below(Named):
        pass

    assert (ResearchLibrary.name, Named.name, Below.name) == ("ResearchLibrary", "papers", "Below")
    assert (Below.chunking.tokens, Below.matching) == (100, "hybrid")


@pytest.mark.parametrize(
    ("said", "named"),
    [
        ({"name": ""}, "''"),
        ({"name": "x" * 201}, "xxx"),
        ({"name": "a\nb"}, r"'a\\nb'"),
        ({"name": "half \ud800"}, "half"),
        ({"name": 5}, "5"),
        ({"chunking": 400}, "'C'.* 400"),
        ({"matching": "semantic"}, "vector, keyword, hybrid"),
    ],
)
def test_a_collection_that_makes_no_sense_cannot_be_declared(
    said: dict[str, Any], named: str
) -> None:
    with pytest.raises(UsageError, match=named):
        type("C", (RagCollection,), said)


@pytest.mark.parametrize(
    "said",
    [
        {"tokens": 0},
        {"tokens": 10**20},
        {"overlap": -1},
        {"tokens": 10, "overlap": 10},
        {"size": 5},
    ],
)
def test_chunks_that_make_no_sense_cannot_be_declared(said: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        Chunking(**said)


async def test_what_is_declared_of_a_collection_makes_a_difference(tmp_path: Path) -> None:
    """Its name, the length of its chunks, how much they repeat, and how it is matched."""
    url = f"sqlite:{tmp_path / 'v.db'}"
    text = Document("a", "The pump X-200 leaks here. " * 40)

    async def made(**said: Any) -> tuple[AddedDocuments, list[RetrievalResult]]:
        declared = type("Declared", (RagCollection,), said)
        async with Loom(store="memory", vectors=url) as app:
            search = app.collection(declared)
            return await search.add([text]), await search.search("X-200", 1, 0.0)

    plain, found = await made()
    assert plain.added == 1
    assert (await made(name="other"))[0].added == 1
    shorter, _ = await made(chunking=Chunking(tokens=20, overlap=0))
    assert shorter.replaced == 1 and shorter.chunks > plain.chunks
    repeating, _ = await made(chunking=Chunking(tokens=20, overlap=10))
    assert repeating.replaced == 1 and repeating.chunks > shorter.chunks
    _, by_words = await made(matching="keyword", chunking=Chunking(tokens=20, overlap=10))
    assert by_words[0].score == 1.0 > found[0].score


# ------------------------------------------------------------------ filters and scores

SCALARS = st.none() | st.booleans() | st.integers(-3, 3) | st.floats(-3, 3) | st.text(max_size=3)


@given(SCALARS | st.lists(SCALARS, max_size=3), SCALARS)
def test_a_filter_passes_what_is_equal_as_json(value: Any, asked: Any) -> None:
    elements = value if isinstance(value, list) else [value]
    equal = any(
        each == asked and isinstance(each, bool) == isinstance(asked, bool) for each in elements
    )
    try:
        [group] = read_filters({"key": asked})
    except UsageError:
        assert isinstance(asked, str) and "\0" in asked
        return
    assert (not set(facts_of({"key": value})).isdisjoint(group)) == equal
    assert set(facts_of({"other": value})).isdisjoint(group)


@given(st.lists(st.integers(0, 50), min_size=1, max_size=8))
def test_the_words_of_a_query_weigh_one_together_and_rare_ones_more(counts: list[int]) -> None:
    weights = weigh(counts, 50)
    assert sum(weights) == pytest.approx(1)
    order = sorted(range(len(counts)), key=counts.__getitem__)
    assert all(weights[a] >= weights[b] > 0 for a, b in zip(order, order[1:], strict=False))


@given(st.floats(-1, 1), st.floats(0, 1))
def test_both_together_are_no_worse_than_either(meaning: float, words: float) -> None:
    assert 1 >= blend(meaning, words) >= max(meaning, words) - 1e-12


def test_a_vector_without_direction_is_none() -> None:
    assert unit([3.0, 4.0]) == [0.6, 0.8]
    assert unit([0.0, 0.0]) is None
    with pytest.raises(UsageError):
        unit([float("nan"), 1.0])


# ------------------------------------------------------------------ embedders


class Counting(HashingEmbedder):
    """Counts what it embeds."""

    def __init__(self) -> None:
        super().__init__(16)
        self.texts: list[str] = []

    async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        self.texts += texts
        return await super().embed(texts)


async def test_only_what_changed_is_embedded() -> None:
    embedder = Counting()
    search = EmbeddingSearch(MemoryVectors(), embedder, ParagraphSplitter())
    documents = [Document(str(n), f"text {n}") for n in range(300)]
    assert await search.add(documents) == (300, 0, 0, 300)
    assert len(embedder.texts) == 300
    documents[3] = Document("3", "other text")
    assert await search.add(documents) == (0, 1, 299, 1)
    assert embedder.texts[300:] == ["other text"]


@pytest.mark.parametrize("vectors", [[], [[1.0] * 15], [[1.0] * 16] * 2, [[float("inf")] * 16]])
async def test_an_embedder_that_breaks_its_word_is_told(vectors: list[list[float]]) -> None:
    class Wrong(HashingEmbedder):
        async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
            return vectors

    search = EmbeddingSearch(MemoryVectors(), Wrong(16), ParagraphSplitter())
    for call in (search.add([Document("a", "text")]), search.search("text")):
        with pytest.raises(UsageError):
            await call


async def test_a_document_of_an_unknown_format_is_refused() -> None:
    strange: Any = "html"
    with pytest.raises(UsageError, match="text, markdown"):
        await InMemorySearch().add([Document("a", "x", format=strange)])


# ------------------------------------------------------------------ registered


async def test_a_collection_is_searched_through_what_is_registered() -> None:
    given, made = InMemorySearch(), list[InMemorySearch]()

    def make() -> InMemorySearch:
        made.append(InMemorySearch())
        return made[-1]

    class Other(RagCollection):
        pass

    class Third(RagCollection):
        pass

    async with Loom(store="memory") as app:
        app.register_collection(ResearchLibrary, given)
        app.register_collection(Other, make)
        app.register_collection(Third, InMemorySearch)
        assert app.collection(ResearchLibrary) is given
        assert not made
        assert app.collection(Other) is app.collection(Other) is made[0]
        assert isinstance(app.collection(Third), InMemorySearch)
        await app.collection(Other).add([Document("a", "red fish")])
    with pytest.raises(UsageError):
        await made[0].search("red fish")
    assert await given.search("still open") == []


async def test_a_collection_that_is_not_registered_is_where_the_settings_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with Loom(store="memory") as app:
        await app.collection(ResearchLibrary).add([Document("a", "Cats purr when content.")])
    assert [path.name for path in (tmp_path / ".turnloom").iterdir()] == ["vectors.db"]
    async with Loom(store="memory") as app:
        [found] = await app.collection(ResearchLibrary).search("a cat", min_relevance=0.2)
    assert found.source_id == "a"


async def test_what_cannot_be_registered_is_refused() -> None:
    class Twin(RagCollection):
        name = "ResearchLibrary"

    nothing: Any = "ResearchLibrary"
    async with Loom(store="memory") as app:
        for wrong in (nothing, str, None):
            with pytest.raises(UsageError):
                app.register_collection(wrong, InMemorySearch)
            with pytest.raises(UsageError):
                app.collection(wrong)
        with pytest.raises(UsageError, match="'ResearchLibrary'"):
            app.register_flow(nothing)
        app.register_collection(ResearchLibrary, InMemorySearch)
        with pytest.raises(UsageError, match="'ResearchLibrary'"):
            app.register_collection(Twin, InMemorySearch)
        app.collection(ResearchLibrary)
        with pytest.raises(UsageError, match="'ResearchLibrary'"):
            app.register_collection(ResearchLibrary, InMemorySearch)


async def test_collections_are_reached_by_their_url() -> None:
    class Mixed(RagCollection):
        matching = "hybrid"

    async with Loom(store="memory", vectors="memory") as app:
        search = app.collection(Mixed)
        await search.add([Document("a", "red fish")])
        assert [each.source_id for each in await search.search("fish", 1, 0.4)] == ["a"]
    for url in ("mongodb://x", "file.db", "postgresql://me:secret@host:port:5/x?y"):
        with pytest.raises(UsageError) as refused:
            Loom(store="memory", vectors=url).collection(Mixed)
        assert "secret" not in str(refused.value)


class Streamed:
    """An adapter that hands out its results one by one, and is not told who is looking."""

    async def search(self, *sought: Any) -> Iterator[RetrievalResult]:
        return (RetrievalResult(text, 0.9, text) for text in ("one", "two"))


async def test_results_that_can_be_read_once_are_not_lost() -> None:
    shown: list[str] = []

    async def engine(task: Task) -> str:
        shown.extend(each.text for each in task.transcript)
        return "Done."

    async with Loom(store="memory") as app:
        app.register_collection(ResearchLibrary, cast(Any, Streamed()))
        board = app.board()
        agent = board.agent("reader").consumes(Question).with_engines(engine)
        agent.with_sources(from_retrieval(ResearchLibrary, "x"))
        await board.publish(Question())
        await board.run_until_idle(PATIENCE)
    assert "one" in shown[0] and "two" in shown[0]


def test_the_check_of_a_document_takes_no_step_per_character() -> None:
    calls: list[str] = []
    sys.setprofile(lambda frame, what, _: calls.append(what))
    try:
        prepare([Document("long", "é" * 50_000)], "whole")
    finally:
        sys.setprofile(None)
    assert len(calls) < 5_000


@pytest.mark.parametrize("text", ["\0", "half \ud800", "half \udfff", "x" * 9_999 + "\udc00"])
def test_a_document_that_not_every_store_takes_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="'d'"):
        prepare([Document("d", text)], "whole")
    assert [*prepare([Document("d", "\ud7ff\ue000\x01😀")], "whole")] == ["d"]
