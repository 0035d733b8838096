"""The searches, token counters and embedders that assembly uses."""

from collections.abc import Awaitable, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from turnloom.assembly.spec.retrieval import RagCollection, RetrievalResult
from turnloom.board.spec import Reader
from turnloom.errors import ContextUnavailable
from turnloom.kernel.values import Json


class Search(Protocol):
    """Searches a collection."""

    def __call__(
        self,
        collection: type[RagCollection],
        query: str,
        top_k: int,
        min_relevance: float | None,
        filters: Mapping[str, Json],
        /,
    ) -> Awaitable[Sequence[RetrievalResult]]:
        """The best `top_k` chunks that pass the filters and are relevant enough."""
        ...


class ReaderSearch(Protocol):
    """Searches a collection on behalf of a reader."""

    def __call__(
        self,
        collection: type[RagCollection],
        query: str,
        top_k: int,
        min_relevance: float | None,
        filters: Mapping[str, Json],
        reader: Reader,
        now: datetime,
        /,
    ) -> Awaitable[Sequence[RetrievalResult]]:
        """The best `top_k` chunks that pass the filters, are relevant enough and are visible to the
        reader at this time."""
        ...


async def no_search(collection: type[RagCollection], *sought: object) -> Sequence[RetrievalResult]:
    """Refuse to search.

    Raises:
        ContextUnavailable: always.
    """
    raise ContextUnavailable(
        f"Collection {collection.name!r} cannot be searched here. Pass `search` to the situation."
    )


class TokenCounter(Protocol):
    """Counts the tokens of a text."""

    @property
    def name(self) -> str:
        """Its name, recorded with the counts in frames."""
        ...

    @property
    def version(self) -> str:
        """Changes whenever the counts change."""
        ...

    def count(self, text: str) -> int:
        """The number of tokens of a text."""
        ...


class Embedder(Protocol):
    """A deterministic model that maps texts to vectors."""

    @property
    def name(self) -> str:
        """Its name."""
        ...

    @property
    def version(self) -> str:
        """Changes whenever the vectors change."""
        ...

    @property
    def dimensions(self) -> int:
        """The length of its vectors."""
        ...

    @property
    def min_relevance(self) -> float:
        """The default threshold: the score at which two texts count as related."""
        ...

    async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """A vector for each text, in order."""
        ...
