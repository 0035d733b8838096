"""Deterministic collections for tests, without a model or files."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from hashlib import blake2b
from typing import NamedTuple

from turnloom.adapters.memory import MemoryVectors
from turnloom.assembly.logic.retrieval import admits, facts_of, rank, read_filters, words_of
from turnloom.assembly.ports.retrieval import ANONYMOUS
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

# The number of components of a vector that a word changes.
MARKS = 8


class HashingEmbedder:
    """Embeds texts by hashing their words: texts that share more words are nearer."""

    name = "hashing"
    version = "1"
    min_relevance = 0.5

    def __init__(self, dimensions: int = 64) -> None:
        self.dimensions = dimensions

    async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """The vectors of the texts, in order."""
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
    """Splits a text into its paragraphs."""

    name = "paragraphs"

    def split(self, text: str, format: Format) -> Sequence[str]:
        """The paragraphs that are not blank, in order."""
        return [part.strip() for part in text.split("\n\n") if part.strip()]


class SearchCall(NamedTuple):
    """The arguments of one search."""

    query: str
    top_k: int
    min_relevance: float | None
    filters: Mapping[str, Json] | None


class InMemorySearch:
    """A collection in memory; seeded results match every query of every tenant, with fixed scores.

    `searches` lists the searches in order.
    """

    def __init__(self, matching: Matching = "vector") -> None:
        self._inner = EmbeddingSearch(
            MemoryVectors(), HashingEmbedder(), ParagraphSplitter(), matching
        )
        self._seeds: list[RetrievalResult] = []
        self.searches: list[SearchCall] = []

    def seed(self, *results: tuple[str, float] | RetrievalResult) -> None:
        """Add results for every query: texts with scores, or `RetrievalResult` objects."""
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
        reader: Reader = ANONYMOUS,
        now: datetime | None = None,
    ) -> RetrievalResults:
        """The best added and seeded results."""
        self.searches.append(SearchCall(query, top_k, min_relevance, filters))
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
        """Add documents of a tenant."""
        return await self._inner.add(documents, tenant)

    async def remove(self, ids: Iterable[str], tenant: str = LOCAL) -> int:
        """Remove documents of a tenant; returns how many there were."""
        return await self._inner.remove(ids, tenant)

    async def aclose(self) -> None:
        """Close the collection; a second call does nothing."""
        await self._inner.aclose()
