"""Collections over a store of vectors: documents are cut and embedded here, for every store."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import islice

from anyio import to_thread

from turnloom.assembly.logic.retrieval import (
    Prepared,
    admits,
    are_for_all,
    check_tenant,
    hidden_from,
    prepare,
    read_filters,
    shared_with_all,
    unit,
    words_of,
)
from turnloom.assembly.ports import Embedder, Splitter, VectorSearch, VectorStore
from turnloom.assembly.ports.retrieval import NOBODY
from turnloom.assembly.spec.retrieval import (
    Added,
    Document,
    Matching,
    Results,
    RetrievalResult,
    check_matching,
    check_search,
)
from turnloom.assembly.spec.vectors import Chunk, Entry, Probe, Space
from turnloom.board.spec import Reader, is_shared
from turnloom.errors import UsageError
from turnloom.kernel.names import LOCAL
from turnloom.kernel.values import Json

# How many documents are kept at once, and how many texts are embedded at once.
DOCUMENTS = 64
TEXTS = 256
# How many different words of a query are looked for at most.
MOST_WORDS = 64
# How much of a query's words a chunk must have unless a search says otherwise.
WORDS = 0.2
# More results than anybody asks for, and a number that every store can count to.
MOST = 1_000_000


def space_of(embedder: Embedder) -> Space:
    """Where the vectors of an embedder live."""
    return Space(embedder.name, embedder.version, embedder.dimensions)


class EmbeddingSearch:
    """A `VectorSearch` over a store of vectors."""

    def __init__(
        self,
        store: VectorStore,
        embedder: Embedder,
        splitter: Splitter,
        matching: Matching = "vector",
    ) -> None:
        check_matching(matching)
        self._store = store
        self._embedder = embedder
        self._splitter = splitter
        self._matching = matching

    async def search(
        self,
        query: str,
        top_k: int = 5,
        min_relevance: float | None = None,
        filters: Mapping[str, Json] | None = None,
        reader: Reader = NOBODY,
        now: datetime | None = None,
    ) -> Results:
        """The best `top_k` pieces of what passes the filters, is relevant enough and may be seen by
        the reader, best first: of the reader's tenant, and of what any tenant shares.

        Raises:
            UsageError: what is asked for makes no sense, or the collection was made with another
                embedder.
            CollectionUnavailable: the collection does not answer, in time or at all.
        """
        check_search(query, top_k, min_relevance)
        check_tenant(reader.tenant)
        groups = read_filters(filters)
        least = WORDS if self._matching == "keyword" else self._embedder.min_relevance
        nothing = Results(for_all=True, min_relevance=least)
        if not query.strip() or not all(groups):
            return nothing
        query = query.encode("utf-8", "replace").decode()  # models refuse half characters
        words = () if self._matching == "vector" else words_of(query)[:MOST_WORDS]
        vector = None if self._matching == "keyword" else unit((await self._embed([query]))[0])
        if vector is None and not words:
            return nothing
        kept = await self._store.visibilities(reader.tenant)
        seen = hidden_from(reader, now, kept.own), shared_with_all(now, kept.shared)
        bounds = min(top_k, MOST), least if min_relevance is None else min_relevance
        probe = Probe(reader.tenant, vector, words, *bounds, groups, *seen)
        # What came to be kept since then may be of a visibility that is not among these.
        found = [e for e in await self._store.nearest(probe) if admits(e.visibility, reader, now)]
        is_empty = not found and await self._store.is_empty(reader.tenant)
        return Results(found, for_all=are_for_all(kept), min_relevance=least, is_empty=is_empty)

    async def add(self, documents: Iterable[Document], tenant: str = LOCAL) -> Added:
        """Keep documents of a tenant: one that it has with the same content stays, with other
        content it is replaced whole.

        Raises:
            UsageError: a document cannot be kept, or the collection was made with another embedder.
            CollectionUnavailable: the rest was not kept; the same may be added again later.
        """
        check_tenant(tenant)
        prepared = await to_thread.run_sync(prepare, list(documents), self._splitter.name)
        known = await self._store.digests(tenant, list(prepared))
        changed = iter([each for id, each in prepared.items() if known.get(id) != each.digest])
        done = Added()
        while some := list(islice(changed, DOCUMENTS)):
            entries = await self._entries(some)
            gone = await self._store.replace(tenant, [entry.id for entry in entries], entries)
            chunks = sum(len(entry.chunks) for entry in entries)
            done = done.plus(Added(len(entries) - gone, gone, 0, chunks))
        return done._replace(unchanged=len(prepared) - done.added - done.replaced)

    async def remove(self, ids: Iterable[str], tenant: str = LOCAL) -> int:
        """Take documents of a tenant out; how many there were."""
        check_tenant(tenant)
        return await self._store.replace(tenant, list(dict.fromkeys(ids)), ())

    async def aclose(self) -> None:
        """Let go of files and connections."""
        await self._store.aclose()

    async def _entries(self, documents: Sequence[Prepared]) -> list[Entry]:
        texts = await to_thread.run_sync(self._split, documents)
        vectors = await self._embed([text for some in texts for text in some])
        return await to_thread.run_sync(_join, documents, texts, vectors)

    def _split(self, documents: Sequence[Prepared]) -> list[Sequence[str]]:
        """On a thread: the chunks of each document."""
        given = [each.document for each in documents]
        return [self._splitter.split(each.text, each.format) for each in given]

    async def _embed(self, texts: Sequence[str]) -> list[Sequence[float]]:
        found: list[Sequence[float]] = []
        for first in range(0, len(texts), TEXTS):
            found += await self._embedder.embed(texts[first : first + TEXTS])
        lengths = {len(vector) for vector in found}
        if len(found) != len(texts) or lengths - {self._embedder.dimensions}:
            raise UsageError(
                f"Embedder {self._embedder.name!r} gave {len(found)} vectors of "
                f"{', '.join(map(str, sorted(lengths)))} dimensions for {len(texts)} texts; it "
                f"says that it has {self._embedder.dimensions}. Correct the embedder."
            )
        return found


class TenantSearch:
    """A collection as one tenant fills and searches it, unless a call names another."""

    def __init__(self, search: VectorSearch, tenant: str) -> None:
        self._search = search
        self._tenant = tenant

    async def search(
        self,
        query: str,
        top_k: int = 5,
        min_relevance: float | None = None,
        filters: Mapping[str, Json] | None = None,
        reader: Reader | None = None,
        now: datetime | None = None,
    ) -> list[RetrievalResult]:
        """The best pieces that the reader may see, or else that everybody of the tenant may."""
        looking = Reader(tenant=self._tenant) if reader is None else reader
        return await self._search.search(query, top_k, min_relevance, filters, looking, now)

    async def add(self, documents: Iterable[Document], tenant: str | None = None) -> Added:
        """Keep documents of the tenant."""
        return await self._search.add(documents, self._tenant if tenant is None else tenant)

    async def remove(self, ids: Iterable[str], tenant: str | None = None) -> int:
        """Take documents of the tenant out; how many there were."""
        return await self._search.remove(ids, self._tenant if tenant is None else tenant)

    async def aclose(self) -> None:
        """Let go of files and connections."""
        await self._search.aclose()


def _join(
    documents: Sequence[Prepared],
    texts: Sequence[Sequence[str]],
    vectors: Sequence[Sequence[float]],
) -> list[Entry]:
    """On a thread: documents with their chunks; one without a direction is all zeros."""
    units = (unit(vector) or [0.0] * len(vector) for vector in vectors)
    entries: list[Entry] = []
    for each, some in zip(documents, texts, strict=True):
        chunks = [Chunk(text, next(units)) for text in some]
        about = each.document.id, each.digest, each.metadata, each.facts
        shared = is_shared(each.document.visibility)
        entries.append(Entry(*about, chunks, each.visibility, shared))
    return entries
