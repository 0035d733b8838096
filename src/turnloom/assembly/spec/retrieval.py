"""Collections of knowledge, and what vector stores keep of them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Literal, NamedTuple, cast, get_args

import msgspec
from pydantic import Field, model_validator

from turnloom.board.spec import Public, Visibility
from turnloom.errors import UsageError
from turnloom.kernel.models import Declared
from turnloom.kernel.values import Json, is_text, preview

# How what is looked for is compared: by meaning, by its words, or by both.
Matching = Literal["vector", "keyword", "hybrid"]
Format = Literal["text", "markdown"]

# The longest name that every store can hold.
LONGEST_NAME = 200
# The longest chunk, in tokens: longer than what any model reads at once.
LONGEST_CHUNK = 1_000_000_000


class Chunking(Declared):
    """How documents are cut: into pieces of so many tokens at most, each repeating the end of the
    one before it with so many at most."""

    tokens: int = Field(default=400, ge=1, le=LONGEST_CHUNK)
    overlap: int = Field(default=40, ge=0)

    @model_validator(mode="after")
    def _overlaps_in_part(self) -> "Chunking":
        if self.overlap >= self.tokens:
            raise ValueError(
                f"An overlap of {self.overlap} tokens leaves no room in chunks of {self.tokens}. "
                "Make it smaller than the chunks."
            )
        return self


class RagCollection:
    """A body of knowledge that can be searched; each subclass is one.

    `name` is that of the class unless the class says otherwise. `matching` is how a query is
    compared with what is there.
    """

    name: ClassVar[str] = "RagCollection"
    chunking: ClassVar[Chunking] = Chunking()
    matching: ClassVar[Matching] = "vector"

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        cls.name = check_name(cls.__dict__.get("name", cls.__name__))
        _check_chunking(cls.name, cls.chunking)
        check_matching(cls.matching)


class Document(msgspec.Struct, frozen=True):
    """A text of a collection under an id of its own, with what is known about it, and who may see
    it. `root` names the folder that it was ingested from; nothing is found by it but what is
    pruned."""

    id: str
    text: str
    metadata: Mapping[str, Json] = {}
    format: Format = "text"
    visibility: Visibility = Public()
    root: str = ""


class RetrievalResult(msgspec.Struct, frozen=True):
    """A piece of a document that was found, and how well it fits: 1 is best.

    `source_id` is the id of the document, `chunk` the number of the piece in it, from 0. Who may
    see the document may see the piece.
    """

    content: str
    score: float
    source_id: str
    metadata: Mapping[str, Json] = {}
    chunk: int = 0
    visibility: Visibility = Public()


class RetrievalResults(list[RetrievalResult]):
    """What was found, best first; `for_all` says that every reader would have found the same.

    `min_relevance` is what a search of this collection takes that names none, and `is_empty` says
    that there is nothing in it to be found.
    """

    for_all: bool
    min_relevance: float
    is_empty: bool

    def __init__(
        self,
        results: Iterable[RetrievalResult] = (),
        *,
        for_all: bool = False,
        min_relevance: float = 0.0,
        is_empty: bool = False,
    ) -> None:
        super().__init__(results)
        self.for_all = for_all
        self.min_relevance = min_relevance
        self.is_empty = is_empty


class AddedDocuments(NamedTuple):
    """What became of documents that were given to a collection, and how many chunks were made."""

    added: int = 0
    replaced: int = 0
    unchanged: int = 0
    chunks: int = 0

    def plus(self, other: "AddedDocuments") -> "AddedDocuments":
        """Both together."""
        return AddedDocuments(*(mine + its for mine, its in zip(self, other, strict=True)))


def check_name(name: object) -> str:
    """The name of a collection.

    Raises:
        UsageError: it cannot be one.
    """
    fits = isinstance(name, str) and 0 < len(name) <= LONGEST_NAME and name.isprintable()
    if not fits or not is_text(name):
        raise UsageError(
            f"{preview(name)} cannot name a collection. A name is a text of 1 to {LONGEST_NAME} "
            "printable characters."
        )
    return str(name)


def check_matching(matching: object) -> None:
    """Refuse a way of matching that there is not.

    Raises:
        UsageError: there is no such way.
    """
    if matching not in get_args(Matching):
        raise UsageError(
            f"There is no matching {preview(matching)}. Use one of {', '.join(get_args(Matching))}."
        )


def check_search(query: object, top_k: object, min_relevance: object) -> None:
    """Refuse what cannot be searched for; without a relevance, the collection has its own.

    Raises:
        UsageError: it says what, and what would be right.
    """
    if not isinstance(query, str):
        raise UsageError(f"A query is a text, not {preview(query)}.")
    if not isinstance(top_k, int) or isinstance(top_k, bool) or top_k < 1:
        raise UsageError(f"top_k is {preview(top_k)}; it takes a whole number from 1 on.")
    if min_relevance is None:
        return
    number = isinstance(min_relevance, int | float) and not isinstance(min_relevance, bool)
    if not number or not 0 <= cast(float, min_relevance) <= 1:
        raise UsageError(
            f"min_relevance is {preview(min_relevance)}; it takes a number from 0 to 1."
        )


def _check_chunking(name: str, chunking: object) -> None:
    if not isinstance(chunking, Chunking):
        raise UsageError(
            f"`chunking` of collection {name!r} is {preview(chunking)}. "
            "Write `chunking = Chunking(tokens=…, overlap=…)`."
        )


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


class StoredDocument(NamedTuple):
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
