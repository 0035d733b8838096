"""Collections over any vector store: documents are split and embedded here."""

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import cast

from anyio import to_thread

from turnloom.assembly.logic.retrieval import (
    PreparedDocument,
    admits,
    are_for_all,
    check_tenant,
    hidden_from,
    prepare,
    read_filters,
    root_fact,
    shared_with_all,
    unit,
    words_of,
)
from turnloom.assembly.ports import Embedder, Splitter, VectorSearch, VectorStore
from turnloom.assembly.ports.retrieval import ANONYMOUS, PrunableStore
from turnloom.assembly.spec.retrieval import (
    AddedDocuments,
    Chunk,
    Document,
    Matching,
    Probe,
    RetrievalResult,
    RetrievalResults,
    Space,
    StoredDocument,
    check_matching,
    check_search,
)
from turnloom.board.spec import Reader, is_shared
from turnloom.errors import Forbidden, UsageError
from turnloom.kernel.values import Json
from turnloom.log.spec import LOCAL

# Documents and characters per batch, since vectors take a multiple of their texts' memory; a longer
# document is a batch by itself.
DOCUMENTS = 64
CHARACTERS = 1_000_000
# Texts per embedding call.
TEXTS = 256
# Documents per removal.
REMOVED = 1_000
# Maximum number of distinct words of a query.
MOST_WORDS = 64
# The default `min_relevance` of a keyword search.
WORDS = 0.2
# The upper limit of `top_k`, which every store supports.
MOST = 1_000_000


def space_of(embedder: Embedder) -> Space:
    """The vector space of an embedder."""
    return Space(embedder.name, embedder.version, embedder.dimensions)


class EmbeddingSearch:
    """A `VectorSearch` over a vector store."""

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
        reader: Reader = ANONYMOUS,
        now: datetime | None = None,
    ) -> RetrievalResults:
        """The best `top_k` chunks that pass the filters, are relevant enough and are visible to the
        reader, best first: of the reader's tenant, and of documents that any tenant shares.

        Raises:
            UsageError: an argument is invalid, or the collection was made with another embedder.
            CollectionUnavailable: the collection failed or timed out.
        """
        check_search(query, top_k, min_relevance)
        check_tenant(reader.tenant)
        groups = read_filters(filters)
        least = WORDS if self._matching == "keyword" else self._embedder.min_relevance
        nothing = RetrievalResults(for_all=True, min_relevance=least)
        if not query.strip() or not all(groups):
            return nothing
        query = query.encode("utf-8", "replace").decode()  # models reject lone surrogates
        words = () if self._matching == "vector" else words_of(query)[:MOST_WORDS]
        vector = None if self._matching == "keyword" else unit((await self._embed([query]))[0])
        if vector is None and not words:
            return nothing
        kept = await self._store.visibilities(reader.tenant)
        seen = hidden_from(reader, now, kept.own), shared_with_all(now, kept.shared)
        bounds = min(top_k, MOST), least if min_relevance is None else min_relevance
        probe = Probe(reader.tenant, vector, words, *bounds, groups, *seen)
        # Documents added since then may have a visibility that is not among these.
        found = [e for e in await self._store.nearest(probe) if admits(e.visibility, reader, now)]
        is_empty = not found and await self._store.is_empty(reader.tenant)
        return RetrievalResults(
            found, for_all=are_for_all(kept), min_relevance=least, is_empty=is_empty
        )

    async def add(self, documents: Iterable[Document], tenant: str = LOCAL) -> AddedDocuments:
        """Add documents of a tenant: an identical one is left as it is, a changed one is replaced.

        Raises:
            UsageError: a document is invalid, or the collection was made with another embedder.
            CollectionUnavailable: the rest was not added; add the same documents again later.
        """
        check_tenant(tenant)
        prepared = await to_thread.run_sync(prepare, list(documents), self._splitter.name)
        known = await self._store.digests(tenant, list(prepared))
        changed = [each for id, each in prepared.items() if known.get(id) != each.digest]
        done = AddedDocuments()
        for some in _batches(changed):
            entries = await self._entries(some)
            gone = await self._store.replace(tenant, [entry.id for entry in entries], entries)
            chunks = sum(len(entry.chunks) for entry in entries)
            done = done.plus(AddedDocuments(len(entries) - gone, gone, 0, chunks))
        return done._replace(unchanged=len(prepared) - done.added - done.replaced)

    async def remove(self, ids: Iterable[str], tenant: str = LOCAL) -> int:
        """Remove documents of a tenant and return how many there were."""
        check_tenant(tenant)
        return await self._store.replace(tenant, list(dict.fromkeys(ids)), ())

    async def prune(self, root: str, kept: Callable[[str], bool], tenant: str = LOCAL) -> int:
        """Remove a tenant's documents of a root unless `kept` accepts their id, and return how many
        there were.

        Raises:
            UsageError: the store cannot list documents.
            CollectionUnavailable: the rest was not removed; try again later.
        """
        check_tenant(tenant)
        if not hasattr(self._store, "having"):
            raise UsageError(
                f"{type(self._store).__name__} cannot list documents, which pruning needs. "
                "Implement `having`; see `turnloom.ports.PrunableStore`."
            )
        store = cast(PrunableStore, self._store)
        gone = [id for id in await store.having(tenant, root_fact(root)) if not kept(id)]
        pieces = (gone[first : first + REMOVED] for first in range(0, len(gone), REMOVED))
        return sum([await self._store.replace(tenant, piece, ()) for piece in pieces])

    async def aclose(self) -> None:
        """Release files and connections."""
        await self._store.aclose()

    async def _entries(self, documents: Sequence[PreparedDocument]) -> list[StoredDocument]:
        texts = await to_thread.run_sync(self._split, documents)
        every = [text for some in texts for text in some]
        vectors: list[Sequence[float]] = []
        for first in range(0, len(every), TEXTS):
            found = await self._embed(every[first : first + TEXTS])
            vectors += await to_thread.run_sync(_compact, found)
        return _join(documents, texts, vectors)

    def _split(self, documents: Sequence[PreparedDocument]) -> list[Sequence[str]]:
        """The chunks of each document; runs in a thread."""
        given = [each.document for each in documents]
        return [self._splitter.split(each.text, each.format) for each in given]

    async def _embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        found = await self._embedder.embed(texts)
        lengths = {len(vector) for vector in found}
        if len(found) != len(texts) or lengths - {self._embedder.dimensions}:
            raise UsageError(
                f"Embedder {self._embedder.name!r} returned {len(found)} vectors of "
                f"{', '.join(map(str, sorted(lengths)))} dimensions for {len(texts)} texts; its "
                f"`dimensions` is {self._embedder.dimensions}. Correct the embedder."
            )
        return found


class TenantSearch:
    """A collection for one tenant, unless a call names another."""

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
        """The best chunks that the reader may see, by default those for everyone of the tenant."""
        looking = Reader(tenant=self._tenant) if reader is None else reader
        return await self._search.search(
            query, top_k, min_relevance, filters, reader=looking, now=now
        )

    async def add(self, documents: Iterable[Document], tenant: str | None = None) -> AddedDocuments:
        """Add documents of the tenant."""
        return await self._search.add(documents, self._tenant if tenant is None else tenant)

    async def remove(self, ids: Iterable[str], tenant: str | None = None) -> int:
        """Remove documents of the tenant and return how many there were."""
        return await self._search.remove(ids, self._tenant if tenant is None else tenant)

    async def aclose(self) -> None:
        """Release files and connections."""
        await self._search.aclose()


class ConfinedSearch(TenantSearch):
    """A collection for one tenant, which refuses calls for another one. The app closes it."""

    async def search(
        self,
        query: str,
        top_k: int = 5,
        min_relevance: float | None = None,
        filters: Mapping[str, Json] | None = None,
        reader: Reader | None = None,
        now: datetime | None = None,
    ) -> list[RetrievalResult]:
        """The best chunks that a reader of the tenant may see.

        Raises:
            Forbidden: the reader belongs to another tenant.
        """
        if reader is not None:
            self._check(reader.tenant)
        return await super().search(query, top_k, min_relevance, filters, reader=reader, now=now)

    async def add(self, documents: Iterable[Document], tenant: str | None = None) -> AddedDocuments:
        """Add documents of the tenant.

        Raises:
            Forbidden: another tenant is named.
        """
        self._check(tenant)
        return await super().add(documents)

    async def remove(self, ids: Iterable[str], tenant: str | None = None) -> int:
        """Remove documents of the tenant and return how many there were.

        Raises:
            Forbidden: another tenant is named.
        """
        self._check(tenant)
        return await super().remove(ids)

    async def aclose(self) -> None:
        """Do nothing: others search it too."""

    def _check(self, tenant: str | None) -> None:
        if tenant not in (None, self._tenant):
            raise Forbidden(f"This collection is not open for tenant {tenant!r}.")


def _batches(documents: Iterable[PreparedDocument]) -> Iterator[list[PreparedDocument]]:
    """Documents in batches."""
    some: list[PreparedDocument] = []
    characters = 0
    for each in documents:
        length = len(each.document.text)
        if len(some) == DOCUMENTS or (some and characters + length > CHARACTERS):
            yield some
            some, characters = [], 0
        some.append(each)
        characters += length
    if some:
        yield some


def _compact(vectors: Iterable[Sequence[float]]) -> list[Sequence[float]]:
    """Unit vectors as compact arrays, zeros for zero vectors; runs in a thread."""
    return [array("d", unit(vector) or [0.0] * len(vector)) for vector in vectors]


def _join(
    documents: Sequence[PreparedDocument],
    texts: Sequence[Sequence[str]],
    vectors: Sequence[Sequence[float]],
) -> list[StoredDocument]:
    """Documents with their chunks."""
    units = iter(vectors)
    entries: list[StoredDocument] = []
    for each, some in zip(documents, texts, strict=True):
        chunks = [Chunk(text, next(units)) for text in some]
        about = each.document.id, each.digest, each.metadata, each.facts
        shared = is_shared(each.document.visibility)
        entries.append(StoredDocument(*about, chunks, each.visibility, shared))
    return entries
