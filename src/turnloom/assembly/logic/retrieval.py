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
from turnloom.board.spec.artifacts import KINDS, choice_of, is_visibility
from turnloom.errors import ContextUnavailable, UsageError
from turnloom.kernel.digests import chain_digest, digest
from turnloom.kernel.marks import neutral
from turnloom.kernel.values import Json, as_object, canonical, is_text, kind_of, preview, writable
from turnloom.variables.logic.paths import is_storable
from turnloom.variables.logic.types import is_json

# Decimals of a score; smaller differences do not count.
DECIMALS = 6
# The longest fact that every database can index; longer ones are replaced by their digest.
LONGEST_FACT = 200
# The longest visibility, in bytes, that every database can index.
LONGEST_VISIBILITY = 2_000
# Documents shared by other tenants are judged for a reader without name, labels and role.
STRANGER = Reader()
# A visibility that never opens.
NEVER = After(datetime.max.replace(tzinfo=UTC))

# A word is letters and digits, without underscores.
_WORD = re.compile(r"[^\W_]+")
_SCALARS = ("null", "boolean", "integer", "number", "string")
_encode = msgspec.json.Encoder(order="deterministic").encode


class Estimate:
    """A token counter without a tokenizer: a quarter of the characters, rounded up."""

    name = COUNTER
    version = "1"

    def count(self, text: str) -> int:
        """The estimated tokens of a text."""
        return estimate(text)


class PreparedDocument(NamedTuple):
    """A validated document: its digest, metadata, facts and visibility."""

    document: Document
    digest: str
    metadata: str
    facts: Sequence[str]
    visibility: str


# ------------------------------------------------------------------ documents


def prepare(documents: Iterable[Document], cut: str) -> dict[str, PreparedDocument]:
    """Validated documents by id; `cut` names the splitter.

    Raises:
        UsageError: a document is invalid, or two with the same id differ.
    """
    found: dict[str, PreparedDocument] = {}
    for document in documents:
        prepared = _prepare(document, cut)
        before = found.setdefault(document.id, prepared)
        if before.digest != prepared.digest:
            raise UsageError(
                f"Document {document.id!r} is given twice with different content. "
                "Give each document a unique id."
            )
    return found


def _prepare(document: Document, cut: str) -> PreparedDocument:
    for what, text in (("id", document.id), ("text", document.text), ("root", document.root)):
        if not _is_kept(text):
            raise UsageError(
                f"The {what} of document {preview(document.id)} is not a storable text. "
                "Remove NUL characters and lone surrogates."
            )
    if not document.id:
        raise UsageError("A document has an empty id. Give it a unique id.")
    if document.format not in get_args(Format):
        raise UsageError(
            f"Document {document.id!r} has the unknown format {preview(document.format)}. "
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
    """Check the name of a tenant.

    Raises:
        UsageError: it is not a storable text.
    """
    if not _is_kept(tenant):
        raise UsageError(
            f"Invalid tenant {preview(tenant)}. Use a text without NUL characters and lone "
            "surrogates."
        )


def _is_kept(text: object) -> bool:
    return isinstance(text, str) and is_storable(text)


def _write_metadata(document: Document) -> str:
    """The metadata as JSON; it must survive a round trip."""
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
    """The visibility of a document as JSON; empty if everyone of its tenant may see it."""
    if not is_visibility(document.visibility):
        raise UsageError(
            f"Document {document.id!r} has the invalid visibility "
            f"{preview(document.visibility)}. Use {choice_of(KINDS)}."
        )
    text = "" if document.visibility == Public() else write_visibility(document.visibility)
    if len(text.encode()) > LONGEST_VISIBILITY:
        raise UsageError(
            f"The visibility of document {document.id!r} is too long to be indexed. "
            "Give its readers a common label, and use Labelled."
        )
    return text


def hidden_from(reader: Reader, now: datetime | None, visibilities: Iterable[str]) -> list[str]:
    """The visibilities that exclude a reader; an unreadable one excludes everyone."""
    return [each for each in visibilities if not admits(read_kept(each), reader, now)]


def shared_with_all(now: datetime | None, visibilities: Iterable[str]) -> list[str]:
    """The shared visibilities that are open to every tenant now."""
    return [each for each in visibilities if admits(read_kept(each), STRANGER, now)]


def are_for_all(kept: Visibilities) -> bool:
    """Whether all readers of a tenant may see everything it can find, now and later."""
    return {*kept.own, *kept.shared} <= {write_visibility(Shared())}


def admits(visibility: object, reader: Reader, now: datetime | None) -> bool:
    """Whether a reader may see something; without `now`, anything that opens at a point in time is
    closed."""
    return may_see(visibility, reader, now or ALWAYS)


def read_kept(visibility: str) -> Visibility:
    """The visibility that a store keeps; an unreadable one excludes everyone."""
    return (read_visibility(visibility) or NEVER) if visibility else Public()


def facts_of(metadata: Mapping[str, Json]) -> tuple[str, ...]:
    """The facts that filters match: each key with its value, or with each element of a list."""
    found: dict[str, None] = {}
    for key, value in metadata.items():
        values = cast(list[Any], value) if isinstance(value, list) else [value]
        found |= {_fact(key, each): None for each in values if kind_of(each) in _SCALARS}
    return tuple(found)


def root_fact(root: str) -> str:
    """The fact for documents of a root; no filter can match it."""
    return _short_fact([root])


def _fact(key: str, value: Json) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return _short_fact([key, value])


def _short_fact(parts: list[Json]) -> str:
    text = _encode(parts).decode()
    return text if len(text) <= LONGEST_FACT else digest(text)


# ------------------------------------------------------------------ queries


def read_filters(filters: Json) -> tuple[tuple[str, ...], ...]:
    """Groups of facts; a document must have a fact from each group.

    Raises:
        UsageError: a key or value is invalid.
    """
    if filters is None:
        return ()
    if not isinstance(filters, Mapping):
        raise UsageError(
            f"`filters` must be a mapping, not {preview(filters)}. "
            'Map metadata keys to values, as in {"tenant": "acme"}.'
        )
    given = cast(Mapping[Any, Json], filters)
    return tuple(_group(key, value) for key, value in given.items())


def _group(key: object, value: Json) -> tuple[str, ...]:
    if not isinstance(key, str) or not key or not is_storable(key):
        raise UsageError(f"Invalid metadata key {preview(key)}. Use a text.")
    several = isinstance(value, list | tuple | set | frozenset)
    values: list[Any] = list(cast(Iterable[Any], value)) if several else [value]
    for each in values:
        if kind_of(each) not in _SCALARS or (isinstance(each, float) and not math.isfinite(each)):
            raise UsageError(
                f"Filter {key!r} has the invalid value {preview(each)}. Use a text, a number, "
                "true, false or null, or a list of alternatives."
            )
        if isinstance(each, str) and not is_storable(each):
            raise UsageError(
                f"Filter {key!r} has the invalid value {preview(each)}. "
                "Remove NUL characters and lone surrogates."
            )
    return tuple(_fact(key, each) for each in values)


def words_of(text: str) -> tuple[str, ...]:
    """The distinct words of a text, in lower case and in order.

    Letters are kept: word indexes have `ß` as is, not as `ss`.
    """
    return tuple(dict.fromkeys(word.lower() for word in _WORD.findall(text)))


# ------------------------------------------------------------------ scores


def unit(vector: Sequence[float]) -> list[float] | None:
    """The vector scaled to length 1; None for a zero vector.

    Raises:
        UsageError: a number in it is not finite.
    """
    length = math.hypot(*vector)
    if not math.isfinite(length):
        raise UsageError("The embedder returned a vector with a non-finite number. Correct it.")
    return [number / length for number in vector] if length else None


def weigh(counts: Sequence[int], total: int) -> list[float]:
    """The weight of each word of a query, by how many of all chunks have it; they add up to 1.

    Rare words weigh more than common ones; a word that no chunk has counts too.
    """
    rare = [math.log(1 + (total - count + 0.5) / (count + 0.5)) for count in counts]
    whole = math.fsum(rare)
    return [each / whole for each in rare]


def blend(meaning: float, words: float) -> float:
    """The combined score by meaning and by words: either is enough, both are better."""
    return 1 - (1 - max(meaning, 0.0)) * (1 - words)


def tidy(score: float) -> float:
    """A score rounded, and at most 1."""
    return min(round(float(score), DECIMALS), 1.0)


def rank(
    results: Iterable[RetrievalResult], top_k: int, min_relevance: float
) -> list[RetrievalResult]:
    """The best relevant results; ties are ordered by source."""
    enough = [each for each in results if each.score >= min_relevance]
    enough.sort(key=lambda each: (-each.score, each.source_id, each.chunk))
    return enough[:top_k]


class SearchQuery(NamedTuple):
    """A search: its collection, query, limits and filters."""

    collection: type[RagCollection]
    query: str
    top_k: int
    min_relevance: float | None
    filters: Mapping[str, Json]

    @property
    def key(self) -> str:
        """The key of this search in a run: equal for equal searches."""
        filters = canonical(dict(self.filters))
        said = self.collection.name, self.query, str(self.top_k), str(self.min_relevance), filters
        return f"search/{chain_digest(*said)}"


def _is_score(value: object) -> bool:
    return isinstance(value, Real) and math.isfinite(value)


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_metadata(value: object) -> bool:
    return isinstance(value, dict) and is_json(cast(dict[str, Json], value))


# Valid fields of a result; third-party adapters may return anything.
_FIELDS: Mapping[str, tuple[Callable[[object], bool], str]] = {
    "content": (lambda value: isinstance(value, str), "a text"),
    "score": (_is_score, "a number"),
    "source_id": (is_text, "a text"),
    "chunk": (_is_number, "an integer"),
    "metadata": (_is_metadata, "a JSON object"),
}


class SearchResult(NamedTuple):
    """The results of a search for a turn, and its duration; `reader` is set if they are only for
    that reader.

    `min_relevance` is the threshold that was used; `is_empty` says that the collection was empty.
    """

    turn: int
    agent: str
    sought: SearchQuery
    results: Sequence[object]
    micros: int
    reader: str = ""
    min_relevance: float = 0.0
    is_empty: bool = False


def known_as(reader: Reader) -> str:
    """The key of a reader in a run."""
    return chain_digest(reader.agent, reader.tenant, *sorted(reader.labels))


def searched_fact(
    found: SearchResult, known: Collection[str], masked: Callable[[str], str] = str
) -> RetrievalSearched:
    """The fact of a search; texts that the run already has are referenced.

    Digests are of the recorded texts, so `masked` is applied first.

    Raises:
        ContextUnavailable: the results are invalid.
    """
    sought, seen = found.sought, set(known)

    def record(each: object) -> FoundResult:
        if not isinstance(each, RetrievalResult):
            raise ContextUnavailable(
                f"The search of collection {sought.collection.name!r} returned {preview(each)}. "
                "Return a list of RetrievalResult from its adapter."
            )
        for field, (is_fit, wanted) in _FIELDS.items():
            if not is_fit(given := getattr(each, field)):
                raise ContextUnavailable(
                    f"The search of collection {sought.collection.name!r} returned a result with "
                    f"the {field} {preview(given)}. Return {wanted} from its adapter."
                )
        text = masked(writable(each.content))
        key = digest(text)
        new_text = None if key in seen else text
        seen.add(key)
        about = (
            masked(each.source_id),
            each.chunk,
            neutral(each.metadata),
            new_text,
            each.visibility,
        )
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
    """The texts by digest that this fact adds to the run."""
    return {each.digest: each.text for each in fact.results if each.text is not None}


def results_of(fact: RetrievalSearched, texts: Mapping[str, str]) -> Iterator[RetrievalResult]:
    """The results of a recorded search; `texts` has the earlier texts of the run."""
    own = found_texts(fact)
    for each in fact.results:
        text = own[each.digest] if each.digest in own else texts[each.digest]
        about = each.source_id, each.metadata, each.chunk, each.visibility
        yield RetrievalResult(text, each.score, *about)
