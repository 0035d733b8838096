"""In-memory vectors, compared one by one, for tests and small collections."""

from collections.abc import Mapping, Sequence
from operator import mul
from typing import NamedTuple

import msgspec

from turnloom.assembly.logic.retrieval import blend, rank, read_kept, tidy, weigh, words_of
from turnloom.assembly.spec.retrieval import (
    Chunk,
    Probe,
    RetrievalResult,
    StoredDocument,
    Visibilities,
)
from turnloom.errors import UsageError


class _IndexedChunk(NamedTuple):
    """A chunk with its document, its number and its words."""

    entry: StoredDocument
    number: int
    chunk: Chunk
    words: frozenset[str]


# The documents of a tenant by id, with their chunks.
_Documents = dict[str, tuple[StoredDocument, list[_IndexedChunk]]]


class MemoryVectors:
    """The vectors of one collection, in memory only."""

    def __init__(self) -> None:
        self._kept: dict[str, _Documents] = {}
        self._closed = False

    async def digests(self, tenant: str, ids: Sequence[str]) -> Mapping[str, str]:
        """The digests of the given documents that the tenant has, by id."""
        self._check_open()
        kept = self._kept.get(tenant, {})
        return {id: kept[id][0].digest for id in ids if id in kept}

    async def replace(
        self, tenant: str, ids: Sequence[str], entries: Sequence[StoredDocument]
    ) -> int:
        """Replace the tenant's documents with these ids by new ones, and return how many were
        removed."""
        self._check_open()
        kept = self._kept.setdefault(tenant, {})
        gone = [kept.pop(id, None) for id in ids]
        for entry in entries:
            kept[entry.id] = entry, _indexed(entry)
        return sum(each is not None for each in gone)

    async def having(self, tenant: str, fact: str) -> Sequence[str]:
        """The ids of the tenant's documents that have a fact."""
        self._check_open()
        kept = self._kept.get(tenant, {})
        return [id for id, (entry, _) in kept.items() if fact in entry.facts]

    async def visibilities(self, tenant: str) -> Visibilities:
        """The distinct visibilities of the tenant's documents, and of shared documents."""
        self._check_open()
        own = {entry.visibility for entry, _ in self._kept.get(tenant, {}).values()} - {""}
        every = (entry for kept in self._kept.values() for entry, _ in kept.values())
        return Visibilities(sorted(own), sorted({e.visibility for e in every if e.shared}))

    async def is_empty(self, tenant: str) -> bool:
        """Whether neither the tenant's own nor shared documents exist."""
        self._check_open()
        every = (entry for kept in self._kept.values() for entry, _ in kept.values())
        return not self._kept.get(tenant) and not any(entry.shared for entry in every)

    async def nearest(self, probe: Probe) -> Sequence[RetrievalResult]:
        """The best matches that pass the probe's filters and relevance, best first, then by
        source."""
        self._check_open()
        passing = [
            place
            for tenant in sorted(self._kept, key=lambda each: (each != probe.tenant, each))
            for entry, places in self._kept[tenant].values()
            if _may_be_found(tenant, entry, probe)
            and all(not set(entry.facts).isdisjoint(group) for group in probe.filters)
            for place in places
        ]
        counts = [sum(word in place.words for place in passing) for word in probe.words]
        weights = dict(zip(probe.words, weigh(counts, len(passing)), strict=True))
        results = (_result(place, _score(place, probe, weights)) for place in passing)
        return rank(results, probe.top_k, probe.min_relevance)

    async def aclose(self) -> None:
        """Refuse all later calls. Idempotent."""
        self._closed = True

    def _check_open(self) -> None:
        if self._closed:
            raise UsageError("This collection is closed. Open it again.")


def _may_be_found(tenant: str, entry: StoredDocument, probe: Probe) -> bool:
    is_seen = tenant == probe.tenant and entry.visibility not in probe.hidden
    return is_seen or entry.visibility in probe.shared


def _indexed(entry: StoredDocument) -> list[_IndexedChunk]:
    return [
        _IndexedChunk(entry, number, chunk, frozenset(words_of(chunk.content)))
        for number, chunk in enumerate(entry.chunks)
    ]


def _score(place: _IndexedChunk, probe: Probe, weights: Mapping[str, float]) -> float:
    by_words = sum(weight for word, weight in weights.items() if word in place.words)
    if probe.vector is None:
        return by_words
    meaning = sum(map(mul, place.chunk.vector, probe.vector))
    return blend(meaning, by_words) if probe.words else meaning


def _result(place: _IndexedChunk, score: float) -> RetrievalResult:
    entry = place.entry
    about = msgspec.json.decode(entry.metadata), place.number, read_kept(entry.visibility)
    return RetrievalResult(place.chunk.content, tidy(score), entry.id, *about)
