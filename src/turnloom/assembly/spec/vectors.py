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
    `visibility`, which is empty where everybody of the tenant may see it. `shared` says that other
    tenants find it too."""

    id: str
    digest: str
    metadata: str
    facts: Sequence[str]
    chunks: Sequence[Chunk]
    visibility: str = ""
    shared: bool = False


class Visibilities(NamedTuple):
    """The different visibilities of what is kept: those of a tenant's own documents, but for that
    of what everybody of it may see, and those of the documents that any tenant shares."""

    own: Sequence[str] = ()
    shared: Sequence[str] = ()


class Probe(NamedTuple):
    """What a tenant looks for: by a vector, by words, or by both.

    A document passes when it has a fact out of each group of `filters`, and either is the tenant's
    own and has none of the visibilities that are `hidden`, or has one of those that are `shared`.
    """

    tenant: str
    vector: Sequence[float] | None
    words: Sequence[str]
    top_k: int
    min_relevance: float
    filters: Sequence[Sequence[str]]
    hidden: Sequence[str] = ()
    shared: Sequence[str] = ()
