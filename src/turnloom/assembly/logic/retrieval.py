"""Searches of collections: queries, filters, scores, and the facts about them."""

import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from numbers import Real
from typing import Any, NamedTuple, cast, get_args

import msgspec

from turnloom.assembly.events import FoundResult, RetrievalSearched
from turnloom.assembly.logic.frames import COUNTER, estimate
from turnloom.assembly.spec.retrieval import (
    Document,
    Format,
    RagCollection,
    RetrievalResult,
    Visibilities,
)
from turnloom.board.logic.matching import ALWAYS, may_see
from turnloom.board.logic.rows import read_visibility, write_visibility
from turnloom.board.spec import After, Public, Reader, Shared, Visibility
from turnloom.board.spec.artifacts import is_visibility
from turnloom.errors import ContextUnavailable, UsageError
from turnloom.kernel.digests import chain_digest, digest
from turnloom.kernel.marks import neutral
from turnloom.kernel.values import Json, as_object, canonical, is_text, kind_of, preview, writable
from turnloom.variables.logic.paths import is_storable
from turnloom.variables.logic.types import is_json

# Decimals of a score; what differs by less is equally good.
DECIMALS = 6
# The longest fact that every database indexes as it is; a longer one is known by its digest.
LONGEST_FACT = 200
# The longest visibility, in bytes, that every database indexes.
LONGEST_VISIBILITY = 2_000
# What another tenant shares is judged as a reader without name, labels and role sees it.
STRANGER = Reader()
# Opens when nobody is left.
NEVER = After(datetime.max.replace(tzinfo=UTC))

# A word is letters and digits; what joins words, such as a low line, is none.
_WORD = re.compile(r"[^\W_]+")
_SCALARS = ("null", "boolean", "integer", "number", "string")
_encode = msgspec.json.Encoder(order="deterministic").encode


class Estimate:
    """The count of tokens without a tokenizer: a quarter of the characters, rounded up."""

    name = COUNTER
    version = "1"

    def count(self, text: str) -> int:
        """About how many tokens a text has."""
        return estimate(text)


class PreparedDocument(NamedTuple):
    """A document that was found fit to be kept: its content's digest, its metadata and facts, and
    who may see it."""

    document: Document
    digest: str
    metadata: str
    facts: Sequence[str]
    visibility: str


# ------------------------------------------------------------------ what goes in


def prepare(documents: Iterable[Document], cut: str) -> dict[str, PreparedDocument]:
    """Documents by id, ready to be kept; `cut` says how they will be cut.

    Raises:
        UsageError: one cannot be kept, or two of one id differ.
    """
    found: dict[str, PreparedDocument] = {}
    for document in documents:
        prepared = _prepare(document, cut)
        before = found.setdefault(document.id, prepared)
        if before.digest != prepared.digest:
            raise UsageError(
                f"Document {document.id!r} is given twice, with different content. "
                "Give each document an id of its own."
            )
    return found


def _prepare(document: Document, cut: str) -> PreparedDocument:
    for what, text in (("id", document.id), ("text", document.text), ("root", document.root)):
        if not _is_kept(text):
            raise UsageError(
                f"The {what} of document {preview(document.id)} is not text that every store can "
                "hold. Take out NUL and half characters."
            )
    if not document.id:
        raise UsageError("A document has an empty id. Give it one by which it is found again.")
    if document.format not in get_args(Format):
        raise UsageError(
            f"Document {document.id!r} has the format {preview(document.format)}. "
            f"Use one of {', '.join(get_args(Format))}."
        )
    metadata = _write_metadata(document)
    visibility = _write_visibility(document)
    beside = filter(None, [visibility, document.root])
    content = chain_digest(document.text, metadata, document.format, cut, *beside)
    facts = facts_of(document.metadata)
    if document.root:
        facts += (root_fact(document.root),)
    return PreparedDocument(document, content, metadata, facts, visibility=visibility)


def check_tenant(tenant: object) -> None:
    """Refuse what cannot be the name of a tenant.

    Raises:
        UsageError: it is no text that every store can hold.
    """
    if not _is_kept(tenant):
        raise UsageError(
            f"{preview(tenant)} cannot name a tenant. Use a text without NUL and half characters."
        )


def _is_kept(text: object) -> bool:
    return isinstance(text, str) and is_storable(text)


def _write_metadata(document: Document) -> str:
    """The metadata as JSON that reads back as it was."""
    given = as_object(document.metadata)
    try:
        text = _encode(given).decode()
        same = given is not None and msgspec.json.decode(text) == given
    except (TypeError, ValueError, RecursionError, OverflowError):
        same, text = False, ""
    if not same:
        raise UsageError(
            f"The metadata of document {document.id!r} is not a JSON object: "
            f"{preview(document.metadata)}. Use texts, numbers, true, false, null, lists and dicts."
        )
    return text


def _write_visibility(document: Document) -> str:
    """Who may see a document as JSON; nothing where everybody of its tenant may."""
    if not is_visibility(document.visibility):
        raise UsageError(
            f"The visibility of document {document.id!r} is {preview(document.visibility)}. "
            "Give a Shared, Public, Private, Labelled, Tenant or After."
        )
    text = "" if document.visibility == Public() else write_visibility(document.visibility)
    if len(text.encode()) > LONGEST_VISIBILITY:
        raise UsageError(
            f"The visibility of document {document.id!r} names too many to be indexed everywhere. "
            "Give a label to those who may see it, and name that."
        )
    return text


def hidden_from(reader: Reader, now: datetime | None, visibilities: Iterable[str]) -> list[str]:
    """Those of visibilities that do not admit a reader; one that cannot be read admits nobody."""
    return [each for each in visibilities if not admits(read_kept(each), reader, now)]


def shared_with_all(now: datetime | None, visibilities: Iterable[str]) -> list[str]:
    """Those of shared visibilities that are open to every tenant now."""
    return [each for each in visibilities if admits(read_kept(each), STRANGER, now)]


def are_for_all(kept: Visibilities) -> bool:
    """Whether nothing that a tenant can find is kept from any of its readers, now or later."""
    return {*kept.own, *kept.shared} <= {write_visibility(Shared())}


def admits(visibility: object, reader: Reader, now: datetime | None) -> bool:
    """Whether a reader may see something; what opens at an instant is closed if it is unknown what
    time it is."""
    return may_see(visibility, reader, now or ALWAYS)


def read_kept(visibility: str) -> Visibility:
    """The visibility that a store keeps; one that cannot be read shows nothing to anybody."""
    return (read_visibility(visibility) or NEVER) if visibility else Public()


def facts_of(metadata: Mapping[str, Json]) -> tuple[str, ...]:
    """What filters find a document by: each key with its value, or with each one of a list."""
    found: dict[str, None] = {}
    for key, value in metadata.items():
        values = cast(list[Any], value) if isinstance(value, list) else [value]
        found |= {_fact(key, each): None for each in values if kind_of(each) in _SCALARS}
    return tuple(found)


def root_fact(root: str) -> str:
    """What documents of a root are found by; no filter says the same."""
    return _short_fact([root])


def _fact(key: str, value: Json) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return _short_fact([key, value])


def _short_fact(parts: list[Json]) -> str:
    text = _encode(parts).decode()
    return text if len(text) <= LONGEST_FACT else digest(text)


# ------------------------------------------------------------------ what is asked


def read_filters(filters: Json) -> tuple[tuple[str, ...], ...]:
    """Groups of facts: a document passes when it has one out of each.

    Raises:
        UsageError: a key or a value cannot be looked for.
    """
    if filters is None:
        return ()
    if not isinstance(filters, Mapping):
        raise UsageError(
            f"Filters are keys of metadata with their values, not {preview(filters)}. "
            'Write them as in {"tenant": "acme"}.'
        )
    given = cast(Mapping[Any, Json], filters)
    return tuple(_group(key, value) for key, value in given.items())


def _group(key: object, value: Json) -> tuple[str, ...]:
    if not isinstance(key, str) or not key or not is_storable(key):
        raise UsageError(f"{preview(key)} cannot be a key of metadata. Name one with a text.")
    several = isinstance(value, list | tuple | set | frozenset)
    values: list[Any] = list(cast(Iterable[Any], value)) if several else [value]
    for each in values:
        if kind_of(each) not in _SCALARS or (isinstance(each, float) and not math.isfinite(each)):
            raise UsageError(
                f"Filter {key!r} asks for {preview(each)}. Give a text, a number, true, false "
                "or null, or a list of such, of which one must be there."
            )
        if isinstance(each, str) and not is_storable(each):
            raise UsageError(f"Filter {key!r} asks for {preview(each)}, which no store can hold.")
    return tuple(_fact(key, each) for each in values)


def words_of(text: str) -> tuple[str, ...]:
    """The different words of a text, in small letters, the first ones first.

    Letters stay letters: indexes of words have `ß` as it is, and not as `ss`.
    """
    return tuple(dict.fromkeys(word.lower() for word in _WORD.findall(text)))


# ------------------------------------------------------------------ how well it fits


def unit(vector: Sequence[float]) -> list[float] | None:
    """A vector of the same direction and of length 1; none if it has no direction.

    Raises:
        UsageError: a number in it is not finite.
    """
    length = math.hypot(*vector)
    if not math.isfinite(length):
        raise UsageError("An embedder gave a vector with a number that is not finite. Correct it.")
    return [number / length for number in vector] if length else None


def weigh(counts: Sequence[int], total: int) -> list[float]:
    """What each word of a query counts for, by how many of all chunks have it: 1 altogether.

    A word that few have says more than one that most have; one that none has is missed as well.
    """
    rare = [math.log(1 + (total - count + 0.5) / (count + 0.5)) for count in counts]
    whole = math.fsum(rare)
    return [each / whole for each in rare]


def blend(meaning: float, words: float) -> float:
    """How well something fits by meaning or by words: either is enough, both are better."""
    return 1 - (1 - max(meaning, 0.0)) * (1 - words)


def tidy(score: float) -> float:
    """A score as it is told: rounded, and never above 1."""
    return min(round(float(score), DECIMALS), 1.0)


def rank(
    results: Iterable[RetrievalResult], top_k: int, min_relevance: float
) -> list[RetrievalResult]:
    """The best that are good enough; equally good ones by the order of their sources."""
    enough = [each for each in results if each.score >= min_relevance]
    enough.sort(key=lambda each: (-each.score, each.source_id, each.chunk))
    return enough[:top_k]


class Sought(NamedTuple):
    """What is looked for, and where."""

    collection: type[RagCollection]
    query: str
    top_k: int
    min_relevance: float | None
    filters: Mapping[str, Json]

    @property
    def key(self) -> str:
        """What this search is known by in a run: the same for the same search."""
        filters = canonical(dict(self.filters))
        said = self.collection.name, self.query, str(self.top_k), str(self.min_relevance), filters
        return f"search/{chain_digest(*said)}"


def _is_score(value: object) -> bool:
    return isinstance(value, Real) and math.isfinite(value)


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_metadata(value: object) -> bool:
    return isinstance(value, dict) and is_json(cast(dict[str, Json], value))


# What can be put on record of a result: adapters of others give whatever they like.
_FIELDS: Mapping[str, tuple[Callable[[object], bool], str]] = {
    "content": (lambda value: isinstance(value, str), "a text"),
    "score": (_is_score, "a number"),
    "source_id": (is_text, "a text"),
    "chunk": (_is_number, "a whole number"),
    "metadata": (_is_metadata, "a JSON object"),
}


class SearchResult(NamedTuple):
    """What a search for a turn gave, in how many microseconds; `reader` is whom alone it is for.

    `min_relevance` is what was relevant enough, and `is_empty` says that the collection was.
    """

    turn: int
    agent: str
    sought: Sought
    results: Sequence[object]
    micros: int
    reader: str = ""
    min_relevance: float = 0.0
    is_empty: bool = False


def known_as(reader: Reader) -> str:
    """What a reader is known by in a run."""
    return chain_digest(reader.agent, reader.tenant, *sorted(reader.labels))


def searched_fact(
    found: SearchResult, known: Collection[str], masked: Callable[[str], str] = str
) -> RetrievalSearched:
    """The fact of a search; a text whose digest the run knows is referred to.

    Digests are of the texts as they are recorded, so whatever masks these is given here.

    Raises:
        ContextUnavailable: what was found are no results.
    """
    sought, seen = found.sought, set(known)

    def record(each: object) -> FoundResult:
        if not isinstance(each, RetrievalResult):
            raise ContextUnavailable(
                f"The search of collection {sought.collection.name!r} gave {preview(each)}. "
                "Let its adapter give a list of RetrievalResult."
            )
        for field, (is_fit, wanted) in _FIELDS.items():
            if not is_fit(given := getattr(each, field)):
                raise ContextUnavailable(
                    f"The search of collection {sought.collection.name!r} gave a result with the "
                    f"{field} {preview(given)}. Let its adapter give {wanted}."
                )
        text = masked(writable(each.content))
        key = digest(text)
        told = None if key in seen else text
        seen.add(key)
        about = masked(each.source_id), each.chunk, neutral(each.metadata), told, each.visibility
        return FoundResult(key, float(each.score), *about)

    return RetrievalSearched(
        found.turn,
        found.agent,
        sought.collection.name,
        sought.query,
        top_k=sought.top_k,
        min_relevance=float(found.min_relevance),
        results=tuple(map(record, found.results)),
        micros=found.micros,
        filters=sought.filters,
        reader=found.reader,
        is_empty=found.is_empty,
    )


def found_texts(fact: RetrievalSearched) -> dict[str, str]:
    """The texts by digest that the run has from this fact on."""
    return {each.digest: each.text for each in fact.results if each.text is not None}


def results_of(fact: RetrievalSearched, texts: Mapping[str, str]) -> Iterator[RetrievalResult]:
    """The results of a search that is on record; `texts` has what the run held before it."""
    own = found_texts(fact)
    for each in fact.results:
        text = own[each.digest] if each.digest in own else texts[each.digest]
        about = each.source_id, each.metadata, each.chunk, each.visibility
        yield RetrievalResult(text, each.score, *about)
