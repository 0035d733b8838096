"""Collections for tests: no model, no file, and always the same."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from hashlib import blake2b
from typing import NamedTuple

from turnloom.adapters.memory import MemoryVectors
from turnloom.assembly.logic.retrieval import admits, facts_of, rank, read_filters, words_of
from turnloom.assembly.ports.retrieval import NOBODY
from turnloom.assembly.service import EmbeddingSearch
from turnloom.assembly.spec.retrieval import (
    AddedDocuments,
    Document,
    Format,
    Matching,
    RetrievalResult,
    RetrievalResults,
)
from turnloom.board.spec import Public, Reader
from turnloom.kernel.values import Json
from turnloom.log.spec import LOCAL

# In how many places of a vector a word leaves its mark.
MARKS = 8


class HashingEmbedder:
    """Vectors out of the words of a text: the more words two texts share, the nearer they are."""

    name = "hashing"
    version = "1"
    min_relevance = 0.5

    def __init__(self, dimensions: int = 64) -> None:
        self.dimensions = dimensions

    async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """A vector for each text, in their order."""
        return [self._vector(text) for text in texts]

    def _vector(self, text: str) -> list[float]:
        vector = [0.0] * self.dimensions
        for word in words_of(text):
            marks = blake2b(word.encode(), digest_size=2 * MARKS).digest()
            for n in range(0, len(marks), 2):
                place = int.from_bytes(marks[n : n + 2], "big")
                vector[place // 2 % self.dimensions] += 1 if place % 2 else -1
        return vector


class ParagraphSplitter:
    """A chunk for each paragraph."""

    name = "paragraphs"

    def split(self, text: str, format: Format) -> Sequence[str]:
        """The paragraphs that are not blank."""
        return [part.strip() for part in text.split("\n\n") if part.strip()]


class Searched(NamedTuple):
    """One search as it was asked for."""

    query: str
    top_k: int
    min_relevance: float | None
    filters: Mapping[str, Json] | None


class InMemorySearch:
    """A collection in memory; what it is seeded with fits every query, of every tenant, as well as
    it is told to.

    `searches` holds what was asked for, in order.
    """

    def __init__(self, matching: Matching = "vector") -> None:
        self._inner = EmbeddingSearch(
            MemoryVectors(), HashingEmbedder(), ParagraphSplitter(), matching
        )
        self._seeds: list[RetrievalResult] = []
        self.searches: list[Searched] = []

    def seed(self, *results: tuple[str, float] | RetrievalResult) -> None:
        """Have these found by every query: texts with their scores, or whole results."""
        for each in results:
            if not isinstance(each, RetrievalResult):
                each = RetrievalResult(*each, source_id=f"seed-{len(self._seeds) + 1}")
            self._seeds.append(each)

    async def search(
        self,
        query: str,
        top_k: int = 5,
        min_relevance: float | None = None,
        filters: Mapping[str, Json] | None = None,
        reader: Reader = NOBODY,
        now: datetime | None = None,
    ) -> RetrievalResults:
        """The best of what it holds and of what it was seeded with."""
        self.searches.append(Searched(query, top_k, min_relevance, filters))
        found = await self._inner.search(
            query, top_k, min_relevance, filters, reader=reader, now=now
        )
        groups = read_filters(filters) if query.strip() else ((),)
        passing = [
            each
            for each in self._seeds
            if admits(each.visibility, reader, now)
            and all(not set(facts_of(each.metadata)).isdisjoint(group) for group in groups)
        ]
        for_all = found.for_all and all(each.visibility == Public() for each in self._seeds)
        least = found.min_relevance if min_relevance is None else min_relevance
        return RetrievalResults(
            rank([*found, *passing], top_k, least),
            for_all=for_all,
            min_relevance=found.min_relevance,
            is_empty=found.is_empty and not self._seeds,
        )

    async def add(self, documents: Iterable[Document], tenant: str = LOCAL) -> AddedDocuments:
        """Keep documents of a tenant, beside what it was seeded with."""
        return await self._inner.add(documents, tenant)

    async def remove(self, ids: Iterable[str], tenant: str = LOCAL) -> int:
        """Take documents of a tenant out; how many there were."""
        return await self._inner.remove(ids, tenant)

    async def aclose(self) -> None:
        """Refuse everything from now on; again changes nothing."""
        await self._inner.aclose()
