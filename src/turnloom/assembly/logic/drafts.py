"""Drafts: the content of each source before the budget is applied."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from turnloom.assembly.events import (
    ContextGathered,
    GatheredItem,
    HistorySummarised,
    RetrievalSearched,
    Span,
    Withheld,
)
from turnloom.assembly.logic.composing import SegmentDraft
from turnloom.assembly.logic.frames import EMPTY, left_out, spoken
from turnloom.assembly.logic.retrieval import SearchQuery, read_filters
from turnloom.assembly.logic.states import text_of, value_at
from turnloom.assembly.spec.formats import fill, places_in
from turnloom.assembly.spec.providers import Message
from turnloom.assembly.spec.retrieval import RetrievalResult
from turnloom.assembly.spec.segments import (
    ArtifactSegment,
    HistorySegment,
    HistorySummary,
    LiteralSegment,
    RetrievalSegment,
    ShownArtifact,
    ShownVariable,
    StateSegment,
    VariableSegment,
)
from turnloom.assembly.spec.sources import (
    HistorySource,
    LiteralSource,
    Read,
    RetrievalSource,
    Share,
    Source,
    StateSource,
)
from turnloom.errors import ContextUnavailable
from turnloom.kernel.code import qualified
from turnloom.kernel.digests import chain_digest
from turnloom.kernel.values import Json, error_text
from turnloom.variables.logic.exposure import ExposedText, VariableValues


def literal_draft(source: LiteralSource, origin: str) -> SegmentDraft:
    """The draft of a constant text."""
    segment = LiteralSegment(source.text, origin=origin, title=source.title, changes="never")
    return SegmentDraft(source, segment)


def state_draft(source: Share, origin: str, text: str) -> SegmentDraft:
    """The draft of a value of the state."""
    if not text.strip():
        return _nothing(source, origin, "the value is empty")
    return SegmentDraft(source, StateSegment(text, origin=origin, title=source.title))


def variable_draft(source: Share, origin: str, shown: Sequence[ExposedText]) -> SegmentDraft:
    """The draft of variables as exposed; absent ones are left out."""
    variables = [
        ShownVariable(str(each.variable), each.text)
        for each in shown
        if each.withheld != "suppressed"
    ]
    withheld = tuple(
        Withheld(f"context_variables.{each.variable}", each.withheld, each.detail)
        for each in shown
        if each.withheld
    )
    if not variables:
        return _nothing(source, origin, "no variable has a value", withheld)
    segment = VariableSegment(tuple(variables), origin=origin, title=source.title)
    return SegmentDraft(source, segment, withheld)


def retrieval_draft(
    source: RetrievalSource,
    origin: str,
    fact: RetrievalSearched,
    results: Iterable[RetrievalResult],
) -> SegmentDraft:
    """The draft of search results, best first, without irrelevant and surplus ones."""
    kept: list[RetrievalResult] = []
    withheld: list[Withheld] = []
    for each in sorted(results, key=lambda result: -result.score):
        called = f"{origin}: {each.source_id}#{each.chunk}"
        if each.score < fact.min_relevance:
            detail = f"score {each.score:g} is below {fact.min_relevance:g}"
            withheld.append(Withheld(called, "low_relevance", detail))
        elif len(kept) == source.top_k:
            withheld.append(Withheld(called, "filtered", f"beyond top_k={source.top_k}"))
        elif not each.content.strip():
            withheld.append(Withheld(called, "empty"))
        else:
            kept.append(each)
    if not kept:
        return _nothing(source, origin, _why_nothing(fact), withheld)
    segment = RetrievalSegment(
        fact.collection,
        fact.query,
        tuple(kept),
        origin=origin,
        title=source.title,
        changes="never" if is_constant(source) else "sometimes",
    )
    return SegmentDraft(source, segment, tuple(withheld))


def _why_nothing(fact: RetrievalSearched) -> str:
    if fact.is_empty:
        return f"collection {fact.collection!r} has no documents"
    return "no result is relevant enough" if fact.results else "no results"


def is_constant(source: RetrievalSource) -> bool:
    """Whether a search is the same in every turn; it then runs once per run."""
    return (
        isinstance(source.query, str)
        and not places_in(source.query)
        and not any(callable(each) for each in source.filters.values())
    )


def artifact_draft(
    source: Share, origin: str, gathered: ContextGathered, texts: Iterable[str]
) -> SegmentDraft:
    """The draft of gathered items with these texts."""
    pairs = zip(gathered.items, texts, strict=True)
    shown = tuple(_artifact(item, text) for item, text in pairs)
    withheld = tuple(left_out(gathered))
    if not shown:
        return _nothing(source, origin, "the provider returned no items", withheld)
    segment = ArtifactSegment(shown, origin=origin, title=source.title, changes="always")
    return SegmentDraft(source, segment, withheld)


def _artifact(item: GatheredItem, text: str) -> ShownArtifact:
    about = item.artifact, item.provider, item.redacted, item.visibility
    return ShownArtifact(text.removeprefix("\n"), *about)


def history_draft(
    source: Share,
    origin: str,
    messages: Sequence[Message],
    summary: HistorySummary | None,
    withheld: tuple[Withheld, ...],
) -> SegmentDraft:
    """The draft of the messages in a window, and of the summary of earlier ones."""
    if not messages and summary is None:
        return _nothing(source, origin, "there are no messages", withheld)
    segment = HistorySegment(
        tuple(messages), summary, origin=origin, title=source.title, changes="always"
    )
    return SegmentDraft(source, segment, withheld)


def blank_draft(source: Source, origin: str) -> SegmentDraft:
    """The draft of a search that is skipped because its query is blank."""
    return _nothing(source, origin, "the query is blank")


def _nothing(
    source: Share, origin: str, why: str, withheld: Iterable[Withheld] = ()
) -> SegmentDraft:
    return SegmentDraft(source, None, (*withheld, Withheld(origin, "empty", why)))


def read_state(source: StateSource, origin: str, state: Any) -> str:
    """The value of a state source, as text.

    Raises:
        ContextUnavailable: the value cannot be read.
    """
    at = source.at
    value = value_at(state, at.split(".")) if isinstance(at, str) else _called(at, origin, state)
    return value if value.__class__ is str else text_of(value)


def read_sought(
    source: RetrievalSource, origin: str, state: Any, values: VariableValues
) -> SearchQuery | None:
    """The search of a source at this moment; None if its query is blank.

    Raises:
        ContextUnavailable: the query or a filter cannot be read.
        UsageError: a filter is invalid.
    """
    if isinstance(source.query, str):
        query = fill(source.query, lambda place: _place(place, state, values))
    else:
        query = text_of(_called(source.query, origin, state))
    if not query.strip():
        return None
    filters: Mapping[str, Json] = {
        key: _called(value, origin, state) if callable(value) else value
        for key, value in source.filters.items()
    }
    read_filters(filters)
    return SearchQuery(
        source.collection, query, source.top_k, source.min_relevance, filters=filters
    )


def _place(name: str, state: Any, values: VariableValues) -> str:
    """The text for a placeholder: the value of a variable, or else of the state."""
    if name in values.now or name in values.absent or name in values.definitions:
        return text_of(values.now.get(name))
    return text_of(value_at(state, name.split(".")))


def _called(read: Read, origin: str, state: Any) -> Any:
    try:
        return read(state)
    except Exception as error:
        raise ContextUnavailable(
            f"{origin}: {qualified(read)} raised {type(error).__name__}: {error_text(error)}. "
            "Make it accept every state."
        ) from error


class Window(NamedTuple):
    """The number of messages before the shown ones, and why they are withheld."""

    outside: int
    reason: str


def window_of(
    source: HistorySource, said: Sequence[Message], count: Callable[[str], int]
) -> Window:
    """The window of a source: the last messages within its limits."""
    start, reason = 0, "filtered"
    if source.last is not None:
        start = max(0, len(said) - source.last)
    if source.tokens is None:
        return Window(start, reason)
    left, place = source.tokens, len(said)
    while place > start:
        left -= count(spoken(said[place - 1].author, said[place - 1].text))
        if left < 0:
            return Window(place, "over_budget")
        place -= 1
    return Window(start, reason)


def span_of(messages: Iterable[Message], before: Span | None = None) -> Span:
    """The span of messages, or a span extended by them; tokens are not counted."""
    first, last, count, _, digest = (
        (0, 0, 0, 0, EMPTY)
        if before is None
        else (before.first, before.last, before.count, 0, before.digest)
    )
    for each in messages:
        first, last, count = first or each.seq, each.seq, count + 1
        digest = chain_digest(digest, spoken(each.author, each.text))
    return Span(first, last, count, 0, digest=digest)


def summary_of(fact: HistorySummarised) -> HistorySummary:
    """The recorded summary."""
    return HistorySummary(
        fact.text, fact.first, fact.last, fact.count, digest=fact.digest, visibility=fact.visibility
    )


def outside_of(origin: str, span: Span, reason: str, summarised: bool) -> Withheld:
    """The entry for the withheld messages before a window."""
    detail = f"{span.count} messages" + (", summarised" if summarised else "")
    return Withheld(f"{origin}: events {span.first} to {span.last}", reason, detail)
