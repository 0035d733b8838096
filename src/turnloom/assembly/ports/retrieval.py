"""Ports of retrieval."""

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

# The default reader sees what everyone of the tenant `local` may see.
ANONYMOUS = Reader()


class VectorSearch(Protocol):
    """A searchable collection of documents, separate for each tenant."""

    async def search(
        self,
        query: str,
        top_k: int = 5,
        min_relevance: float | None = None,
        filters: Mapping[str, Json] | None = None,
        reader: Reader = ANONYMOUS,
        now: datetime | None = None,
    ) -> list[RetrievalResult]:
        """The best `top_k` chunks that pass the filters, are relevant enough and are visible to the
        reader, best first; as `RetrievalResults` if it is known whether all readers get the same.
        `min_relevance` defaults to a value that suits the scores of this collection.

        The chunks belong to documents of the reader's tenant, or to documents that any tenant
        shares. Without `now`, documents that open at a point in time are not visible. A filter maps
        a metadata key to the required value, or to a list of alternatives. If a document has a
        list, one matching element is enough. A blank query finds nothing.

        Raises:
            UsageError: an argument is invalid.
            CollectionUnavailable: the collection failed or timed out.
        """
        ...

    async def add(self, documents: Iterable[Document], tenant: str = LOCAL) -> AddedDocuments:
        """Add documents of a tenant: an identical one is left as it is, a changed one is replaced.

        Raises:
            UsageError: a document is invalid, or the collection was made with another embedder.
            CollectionUnavailable: the rest was not added; add the same documents again later.
        """
        ...

    async def remove(self, ids: Iterable[str], tenant: str = LOCAL) -> int:
        """Remove documents of a tenant and return how many there were."""
        ...

    async def aclose(self) -> None:
        """Release files and connections."""
        ...


class PlainSearch(Protocol):
    """A collection without readers: results are visible to everyone, unless a result has a
    visibility."""

    async def search(
        self,
        query: str,
        top_k: int = 5,
        min_relevance: float | None = None,
        filters: Mapping[str, Json] | None = None,
    ) -> list[RetrievalResult]:
        """The best `top_k` chunks that pass the filters and are relevant enough, best first.
        `min_relevance` defaults to a value that suits the scores of this collection.

        Raises:
            CollectionUnavailable: the collection failed or timed out.
        """
        ...

    async def aclose(self) -> None:
        """Release files and connections."""
        ...


class VectorStore(Protocol):
    """The vectors of one collection in one space. The tenant is part of a document's key: two
    tenants may have documents with the same id."""

    async def digests(self, tenant: str, ids: Sequence[str]) -> Mapping[str, str]:
        """The digests of those of these documents that the tenant has, by id."""
        ...

    async def replace(
        self, tenant: str, ids: Sequence[str], entries: Sequence[StoredDocument]
    ) -> int:
        """Atomically remove the tenant's documents with these ids and add `entries`; return how
        many were removed.

        Raises:
            UsageError: the collection was made in another space.
            CollectionUnavailable: nothing was changed; try again later.
        """
        ...

    async def visibilities(self, tenant: str) -> Visibilities:
        """The distinct visibilities of the tenant's documents, and of those that any tenant shares.

        Raises:
            UsageError: the collection was made in another space.
            CollectionUnavailable: the store failed or timed out.
        """
        ...

    async def is_empty(self, tenant: str) -> bool:
        """Whether the tenant has no document here, and no tenant shares one.

        Raises:
            UsageError: the collection was made in another space.
            CollectionUnavailable: the store failed or timed out.
        """
        ...

    async def nearest(self, probe: Probe) -> Sequence[RetrievalResult]:
        """The relevant chunks that pass the probe, best first, then by source; for equal sources
        the tenant's own come first, then others by tenant name.

        Raises:
            UsageError: the collection was made in another space.
            CollectionUnavailable: the store failed or timed out.
        """
        ...

    async def aclose(self) -> None:
        """Release files and connections, and reject all further calls."""
        ...


class PrunableStore(Protocol):
    """A `VectorStore` that can list documents, as pruning needs."""

    async def having(self, tenant: str, fact: str) -> Sequence[str]:
        """The ids of the tenant's documents that have a fact; documents without chunks may be
        omitted.

        Raises:
            UsageError: the collection was made in another space.
            CollectionUnavailable: the store failed or timed out.
        """
        ...


class Vectors(Protocol):
    """Storage for the vectors of collections."""

    def open(self, collection: str, space: Space) -> VectorStore:
        """The vectors of a collection in this space, opened lazily. The app closes the result."""
        ...


class Splitter(Protocol):
    """Splits texts into chunks, deterministically."""

    @property
    def name(self) -> str:
        """Its name; changes whenever the chunks change."""
        ...

    def split(self, text: str, format: Format) -> Sequence[str]:
        """The chunks of a text, in order."""
        ...
