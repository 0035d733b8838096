"""By what means context is made: collections are searched, tokens are counted, texts compared."""

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
        """The best `top_k` pieces of what passes the filters and is relevant enough."""
        ...


class ReaderSearch(Protocol):
    """Searches a collection for a reader."""

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
        """The best `top_k` pieces of what passes the filters, is relevant enough and may be seen by
        the reader at this moment."""
        ...


async def no_search(collection: type[RagCollection], *sought: object) -> Sequence[RetrievalResult]:
    """Refuse to search.

    Raises:
        ContextUnavailable: always.
    """
    raise ContextUnavailable(
        f"Collection {collection.name!r} cannot be searched here. Give the situation a `search`."
    )


class TokenCounter(Protocol):
    """How many tokens a text has."""

    @property
    def name(self) -> str:
        """What it is called; frames name it beside their counts."""
        ...

    @property
    def version(self) -> str:
        """Changes when the counts do."""
        ...

    def count(self, text: str) -> int:
        """How many tokens a text has."""
        ...


class Embedder(Protocol):
    """A model that turns texts into vectors; the same text always into the same."""

    @property
    def name(self) -> str:
        """What it is called."""
        ...

    @property
    def version(self) -> str:
        """Changes when the vectors do."""
        ...

    @property
    def dimensions(self) -> int:
        """How long its vectors are."""
        ...

    @property
    def min_relevance(self) -> float:
        """The score from which on its vectors say that two texts have to do with each other: what a
        search takes that names none."""
        ...

    async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """A vector for each text, in their order."""
        ...
