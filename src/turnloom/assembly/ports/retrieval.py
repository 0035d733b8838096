"""What retrieval needs from the world."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from turnloom.assembly.spec.retrieval import (
    AddedDocuments,
    Document,
    Format,
    Probe,
    RetrievalResult,
    Space,
    StoredDocument,
    Visibilities,
)
from turnloom.board.spec import Reader
from turnloom.kernel.values import Json
from turnloom.log.spec import LOCAL

# A search that names no reader sees what everybody of the tenant `local` may see.
NOBODY = Reader()


class VectorSearch(Protocol):
    """One collection: documents go in, the pieces that fit a query come out. Each tenant has
    documents of its own in it."""

    async def search(
        self,
        query: str,
        top_k: int = 5,
        min_relevance: float | None = None,
        filters: Mapping[str, Json] | None = None,
        reader: Reader = NOBODY,
        now: datetime | None = None,
    ) -> list[RetrievalResult]:
        """The best `top_k` pieces of what passes the filters, is relevant enough and may be seen by
        the reader, best first: `Results`, where it is known whether they are the same for all.
        Without `min_relevance` it is what suits the scores of this collection.

        They are pieces of documents of the reader's tenant, and of those that any tenant shares.
        Whoever does not say what time it is does not see what opens at an instant. A filter names
        a key of the metadata and the value to be there, or a list of values of which one must be.
        Where a document has a list, one of its elements is enough. A blank query finds nothing.

        Raises:
            UsageError: what is asked for makes no sense.
            CollectionUnavailable: the collection does not answer, in time or at all.
        """
        ...

    async def add(self, documents: Iterable[Document], tenant: str = LOCAL) -> AddedDocuments:
        """Keep documents of a tenant: one that it has with the same content stays, with other
        content it is replaced whole.

        Raises:
            UsageError: a document cannot be kept, or the collection was made with another embedder.
            CollectionUnavailable: the rest was not kept; the same may be added again later.
        """
        ...

    async def remove(self, ids: Iterable[str], tenant: str = LOCAL) -> int:
        """Take documents of a tenant out; how many there were."""
        ...

    async def aclose(self) -> None:
        """Let go of files and connections."""
        ...


class PlainSearch(Protocol):
    """One collection that does not ask who is looking: what it finds is for everybody, but for
    results that say otherwise."""

    async def search(
        self,
        query: str,
        top_k: int = 5,
        min_relevance: float | None = None,
        filters: Mapping[str, Json] | None = None,
    ) -> list[RetrievalResult]:
        """The best `top_k` pieces of what passes the filters and is relevant enough, best first.
        Without `min_relevance` it is what suits the scores of this collection.

        Raises:
            CollectionUnavailable: the collection does not answer, in time or at all.
        """
        ...

    async def aclose(self) -> None:
        """Let go of files and connections."""
        ...


class VectorStore(Protocol):
    """The vectors of one collection, all of one space. The tenant is part of the key of a document:
    two tenants may have documents of one id."""

    async def digests(self, tenant: str, ids: Sequence[str]) -> Mapping[str, str]:
        """The digests of those of these documents that the tenant has, by id."""
        ...

    async def replace(
        self, tenant: str, ids: Sequence[str], entries: Sequence[StoredDocument]
    ) -> int:
        """Take the tenant's documents of these ids out and put these in, all or nothing; how many
        went.

        Raises:
            UsageError: the collection was made in another space.
            CollectionUnavailable: nothing was changed; the same may be tried again later.
        """
        ...

    async def visibilities(self, tenant: str) -> Visibilities:
        """The different visibilities of what the tenant has, and of what any tenant shares.

        Raises:
            UsageError: the collection was made in another space.
            CollectionUnavailable: the store does not answer, in time or at all.
        """
        ...

    async def is_empty(self, tenant: str) -> bool:
        """Whether the tenant has no document here, and no tenant shares one.

        Raises:
            UsageError: the collection was made in another space.
            CollectionUnavailable: the store does not answer, in time or at all.
        """
        ...

    async def nearest(self, probe: Probe) -> Sequence[RetrievalResult]:
        """What fits best of what passes, relevant enough, best first and then by source; of one
        source of several tenants, the prober's own comes first and others by the tenants' names.

        Raises:
            UsageError: the collection was made in another space.
            CollectionUnavailable: the store does not answer, in time or at all.
        """
        ...

    async def aclose(self) -> None:
        """Let go of files and connections, and refuse everything from now on."""
        ...


class PrunableStore(Protocol):
    """A `VectorStore` that also lists documents; pruning needs it."""

    async def having(self, tenant: str, fact: str) -> Sequence[str]:
        """The ids of the tenant's documents that have a fact; those without a chunk may be left
        out.

        Raises:
            UsageError: the collection was made in another space.
            CollectionUnavailable: the store does not answer, in time or at all.
        """
        ...


class Vectors(Protocol):
    """Where the vectors of collections are kept."""

    def open(self, collection: str, space: Space) -> VectorStore:
        """The vectors of a collection, all of this space; nothing is opened before it is used.
        The app closes what it was given here."""
        ...


class Splitter(Protocol):
    """Cuts texts into chunks; the same text always into the same."""

    @property
    def name(self) -> str:
        """How it cuts; changes when the chunks do."""
        ...

    def split(self, text: str, format: Format) -> Sequence[str]:
        """The chunks of a text, in their order."""
        ...
