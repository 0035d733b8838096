"""Searches of collections: what is looked for, the fact of what was found, and back."""

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from numbers import Real
from typing import NamedTuple, cast

from turnloom.assembly.events import FoundResult, RetrievalSearched
from turnloom.assembly.spec.retrieval import RagCollection, RetrievalResult
from turnloom.board.spec import Reader
from turnloom.errors import ContextUnavailable
from turnloom.kernel.digests import chain, digest
from turnloom.kernel.marks import neutral
from turnloom.kernel.values import Json, canonical, is_text, preview, writable
from turnloom.variables.logic.types import is_json


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
        return f"search/{chain(*said)}"


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


class Found(NamedTuple):
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
    return chain(reader.agent, reader.tenant, *sorted(reader.labels))


def searched_fact(
    found: Found, known: Collection[str], masked: Callable[[str], str] = str
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
        sought.top_k,
        float(found.min_relevance),
        tuple(map(record, found.results)),
        found.micros,
        sought.filters,
        found.reader,
        found.is_empty,
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
