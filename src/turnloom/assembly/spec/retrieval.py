"""Collections, documents, and the values that vector stores keep."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Literal, NamedTuple, cast, get_args

import msgspec
from pydantic import Field, model_validator

from turnloom.board.spec import Public, Visibility
from turnloom.errors import UsageError
from turnloom.kernel.models import Declared
from turnloom.kernel.values import Json, is_text, preview

# How a query is matched: by meaning, by keywords, or by both.
Matching = Literal["vector", "keyword", "hybrid"]
Format = Literal["text", "markdown"]

# The longest name that every store accepts.
LONGEST_NAME = 200
# The longest chunk, in tokens: larger than any model's window.
LONGEST_CHUNK = 1_000_000_000


class Chunking(Declared):
    """How documents are split: the maximum tokens of a chunk, and of its overlap with the previous
    one."""

    tokens: int = Field(default=400, ge=1, le=LONGEST_CHUNK)
    overlap: int = Field(default=40, ge=0)

    @model_validator(mode="after")
    def _overlaps_in_part(self) -> "Chunking":
        if self.overlap >= self.tokens:
            raise ValueError(
                f"`overlap` is {self.overlap}, but must be smaller than `tokens`, which is "
                f"{self.tokens}."
            )
        return self


class RagCollection:
    """A searchable collection of documents; subclass it to declare one.

    `name` defaults to the class name. `matching` is how queries are matched.
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
    """A document of a collection: its id, text, metadata and visibility. `root` is the folder it
    was ingested from, used only for pruning."""

    id: str
    text: str
    metadata: Mapping[str, Json] = {}
    format: Format = "text"
    visibility: Visibility = Public()
    root: str = ""


class RetrievalResult(msgspec.Struct, frozen=True):
    """A chunk that a search found, and its score: 1 is best.

    `source_id` is the id of the document, `chunk` the index of the chunk in it. The chunk has the
    visibility of its document.
    """

    content: str
    score: float
    source_id: str
    metadata: Mapping[str, Json] = {}
    chunk: int = 0
    visibility: Visibility = Public()


class RetrievalResults(list[RetrievalResult]):
    """Search results, best first; `for_all` says that every reader gets the same.

    `min_relevance` is the default threshold of the collection; `is_empty` says that the collection
    has no documents.
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
    """Counts of added, replaced and unchanged documents, and of new chunks."""

    added: int = 0
    replaced: int = 0
    unchanged: int = 0
    chunks: int = 0

    def plus(self, other: "AddedDocuments") -> "AddedDocuments":
        """The sum of both."""
        return AddedDocuments(*(mine + its for mine, its in zip(self, other, strict=True)))


def check_name(name: object) -> str:
    """The name of a collection.

    Raises:
        UsageError: the name is invalid.
    """
    fits = isinstance(name, str) and 0 < len(name) <= LONGEST_NAME and name.isprintable()
    if not fits or not is_text(name):
        raise UsageError(
            f"Invalid collection name {preview(name)}. Use 1 to {LONGEST_NAME} printable "
            "characters."
        )
    return str(name)


def check_matching(matching: object) -> None:
    """Check a way of matching.

    Raises:
        UsageError: it is unknown.
    """
    if matching not in get_args(Matching):
        raise UsageError(
            f"Unknown matching {preview(matching)}. Use one of {', '.join(get_args(Matching))}."
        )


def check_search(query: object, top_k: object, min_relevance: object) -> None:
    """Check the arguments of a search; without `min_relevance`, the collection has a default.

    Raises:
        UsageError: an argument is invalid.
    """
    if not isinstance(query, str):
        raise UsageError(f"`query` must be a text, not {preview(query)}.")
    if not isinstance(top_k, int) or isinstance(top_k, bool) or top_k < 1:
        raise UsageError(f"`top_k` must be an integer of at least 1, not {preview(top_k)}.")
    if min_relevance is None:
        return
    number = isinstance(min_relevance, int | float) and not isinstance(min_relevance, bool)
    if not number or not 0 <= cast(float, min_relevance) <= 1:
        raise UsageError(
            f"`min_relevance` must be a number from 0 to 1, not {preview(min_relevance)}."
        )


def _check_chunking(name: str, chunking: object) -> None:
    if not isinstance(chunking, Chunking):
        raise UsageError(
            f"`chunking` of collection {name!r} is {preview(chunking)}. "
            "Write `chunking = Chunking(tokens=…, overlap=…)`."
        )


class Space(NamedTuple):
    """A vector space; vectors of different spaces are not comparable."""

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
    """A document as stored; filters match its `facts`. `metadata` and `visibility` are JSON; an
    empty `visibility` means everyone of the tenant. `shared` makes it visible to other tenants."""

    id: str
    digest: str
    metadata: str
    facts: Sequence[str]
    chunks: Sequence[Chunk]
    visibility: str = ""
    shared: bool = False


class Visibilities(NamedTuple):
    """The distinct visibilities in a store: of a tenant's documents, except those that all of the
    tenant may see, and of the documents that any tenant shares."""

    own: Sequence[str] = ()
    shared: Sequence[str] = ()


class Probe(NamedTuple):
    """A search by a tenant: by vector, by words, or by both.

    A document passes if it has a fact from each group of `filters`, and either belongs to the
    tenant with a visibility that is not `hidden`, or has a visibility in `shared`.
    """

    tenant: str
    vector: Sequence[float] | None
    words: Sequence[str]
    top_k: int
    min_relevance: float
    filters: Sequence[Sequence[str]]
    hidden: Sequence[str] = ()
    shared: Sequence[str] = ()
