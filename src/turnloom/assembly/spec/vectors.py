"""What stores of vectors are given: documents cut and embedded, and what is looked for."""

from collections.abc import Sequence
from typing import NamedTuple


class Space(NamedTuple):
    """Where vectors live: those of another model, or of another size, say nothing here."""

    embedder: str
    version: str
    dimensions: int

    def __str__(self) -> str:
        return f"{self.embedder} {self.version} ({self.dimensions} dimensions)"


class Chunk(NamedTuple):
    """A piece of a document, and its vector: of length 1, or all zeros."""

    content: str
    vector: Sequence[float]


class Entry(NamedTuple):
    """A document as it is kept; `facts` is what filters find it by, `metadata` is JSON, and so is
    `visibility`, which is empty where everybody may see it."""

    id: str
    digest: str
    metadata: str
    facts: Sequence[str]
    chunks: Sequence[Chunk]
    visibility: str = ""


class Probe(NamedTuple):
    """What is looked for: by a vector, by words, or by both.

    A document passes when it has a fact out of each group of `filters`, and none of the
    visibilities that are `hidden`.
    """

    vector: Sequence[float] | None
    words: Sequence[str]
    top_k: int
    min_relevance: float
    filters: Sequence[Sequence[str]]
    hidden: Sequence[str] = ()
