"""Documents and queries for the suites of collections."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from operator import mul
from typing import Any

from turnloom.assembly.logic.retrieval import facts_of, rank, read_filters, tidy, unit
from turnloom.assembly.ports import VectorSearch
from turnloom.assembly.spec.retrieval import Document, Matching, RetrievalResult
from turnloom.testing.retrieval import HashingEmbedder, ParagraphSplitter

# The parts of a collection under test.
EMBEDDER = HashingEmbedder()
SPLITTER = ParagraphSplitter()

NOUNS = ("cat", "dog", "ship", "tree", "moon", "salt", "wine", "bell", "coat", "fern")
VERBS = ("sees", "likes", "moves", "paints", "finds", "counts", "sells", "draws")
QUERIES = ("cat sees moon", "salt", "the wine moves a bell", "fern fern ship", "absent words")
HOSTILE = ("it's", 'a"b', "a; DROP TABLE chunks", "%s %(x)s", "a'); --", "走る", "{}", "*", "\\")

# The largest difference between scores that count as equal.
NEARLY = 1e-5


class CollectionSuite:
    """The common part of the suites for collections."""

    def fresh(self, matching: Matching = "vector") -> AbstractAsyncContextManager[VectorSearch]:
        """An empty collection with `EMBEDDER` and `SPLITTER`."""
        raise NotImplementedError


def library(count: int) -> list[Document]:
    """Documents `d000`, `d001` and so on: short sentences, some of them equal."""
    documents: list[Document] = []
    for n in range(count):
        words = NOUNS[n % 10], VERBS[n // 3 % 8], NOUNS[n // 7 % 10]
        metadata: dict[str, Any] = {
            "tenant": f"t{n % 5}",
            "year": 2000 + n % 3,
            "draft": n % 2 == 0,
        }
        documents.append(Document(f"d{n:03}", f"The {' '.join(words)}.", metadata))
    return documents


async def everything(
    documents: Sequence[Document], query: str, filters: Mapping[str, Any] | None = None
) -> list[RetrievalResult]:
    """Every document that passes the filters, best first."""
    texts = [query, *(document.text for document in documents)]
    vectors = [unit(vector) or [] for vector in await EMBEDDER.embed(texts)]
    groups = read_filters(filters)
    results = [
        RetrievalResult(each.text, tidy(sum(map(mul, vector, vectors[0]))), each.id, each.metadata)
        for each, vector in zip(documents, vectors[1:], strict=True)
        if all(not set(facts_of(each.metadata)).isdisjoint(group) for group in groups)
    ]
    return rank(results, len(results), -1)


def agree(
    found: Sequence[RetrievalResult],
    wanted: Sequence[RetrievalResult],
    top_k: int,
    min_relevance: float = 0.0,
) -> bool:
    """Whether the results are the best of the wanted ones, within the precision of 32-bit
    floats."""
    by_id = {each.source_id: each for each in wanted}
    best = rank(wanted, top_k, min_relevance)
    return (
        list(found) == rank(found, top_k, min_relevance)
        and len({each.source_id for each in found}) == len(found) == len(best)
        and all(abs(a.score - b.score) < NEARLY for a, b in zip(found, best, strict=True))
        and all(_is_same(each, by_id.get(each.source_id)) for each in found)
    )


def _is_same(found: RetrievalResult, wanted: RetrievalResult | None) -> bool:
    if wanted is None or abs(found.score - wanted.score) > NEARLY:
        return False
    return (found.content, found.metadata) == (wanted.content, wanted.metadata)


async def ids(search: VectorSearch, query: str, **asked: Any) -> list[str]:
    """The source ids of up to a hundred results with any score."""
    widely: dict[str, Any] = {"top_k": 100, "min_relevance": 0.0, **asked}
    found = await search.search(query, **widely)
    return [each.source_id for each in found]
