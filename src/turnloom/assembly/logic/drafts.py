"""Drafts: what sources come to at a moment, before it is known what else there is."""

from collections.abc import Iterable, Sequence

from turnloom.assembly.events import ContextGathered, GatheredItem, RetrievalSearched, Withheld
from turnloom.assembly.logic.composing import Draft
from turnloom.assembly.logic.pieces import left_out
from turnloom.assembly.spec.messages import Message
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
from turnloom.assembly.spec.sources import LiteralSource, RetrievalSource, Share, Source
from turnloom.assembly.spec.templates import places_in
from turnloom.variables.logic.exposure import Shown


def literal_draft(source: LiteralSource, origin: str) -> Draft:
    """A text that is always the same."""
    segment = LiteralSegment(source.text, origin=origin, title=source.title, changes="never")
    return Draft(source, segment)


def state_draft(source: Share, origin: str, text: str) -> Draft:
    """A value of the state."""
    if not text.strip():
        return _nothing(source, origin, "the value is empty")
    return Draft(source, StateSegment(text, origin=origin, title=source.title))


def variable_draft(source: Share, origin: str, shown: Sequence[Shown]) -> Draft:
    """Variables as an exposure shows them; those that are absent are left out."""
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
        return _nothing(source, origin, "none of the variables is there", withheld)
    segment = VariableSegment(tuple(variables), origin=origin, title=source.title)
    return Draft(source, segment, withheld)


def retrieval_draft(
    source: RetrievalSource,
    origin: str,
    fact: RetrievalSearched,
    results: Iterable[RetrievalResult],
) -> Draft:
    """What a search found, best first, but for what is not relevant enough or more than was asked
    for."""
    kept: list[RetrievalResult] = []
    withheld: list[Withheld] = []
    for each in sorted(results, key=lambda result: -result.score):
        called = f"{origin}: {each.source_id}#{each.chunk}"
        if each.score < fact.min_relevance:
            detail = f"scores {each.score:g}, and {fact.min_relevance:g} is enough"
            withheld.append(Withheld(called, "low_relevance", detail))
        elif len(kept) == source.top_k:
            withheld.append(Withheld(called, "filtered", f"there are {source.top_k} before it"))
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
    return Draft(source, segment, tuple(withheld))


def _why_nothing(fact: RetrievalSearched) -> str:
    if fact.is_empty:
        return f"there are no documents in collection {fact.collection!r}"
    return "nothing is relevant enough" if fact.results else "nothing was found"


def is_constant(source: RetrievalSource) -> bool:
    """Whether a search is the same in every turn; it is then made once in a run."""
    return (
        isinstance(source.query, str)
        and not places_in(source.query)
        and not any(callable(each) for each in source.filters.values())
    )


def artifact_draft(
    source: Share, origin: str, gathered: ContextGathered, texts: Iterable[str]
) -> Draft:
    """The items that were gathered, with these texts."""
    pairs = zip(gathered.items, texts, strict=True)
    shown = tuple(_artifact(item, text) for item, text in pairs)
    withheld = tuple(left_out(gathered))
    if not shown:
        return _nothing(source, origin, "the provider gave nothing", withheld)
    segment = ArtifactSegment(shown, origin=origin, title=source.title, changes="always")
    return Draft(source, segment, withheld)


def _artifact(item: GatheredItem, text: str) -> ShownArtifact:
    about = item.artifact, item.provider, item.redacted, item.visibility
    return ShownArtifact(text.removeprefix("\n"), *about)


def history_draft(
    source: Share,
    origin: str,
    messages: Sequence[Message],
    summary: HistorySummary | None,
    withheld: tuple[Withheld, ...],
) -> Draft:
    """What was said in a window, and what is said of the messages before it."""
    if not messages and summary is None:
        return _nothing(source, origin, "nothing was said", withheld)
    segment = HistorySegment(
        tuple(messages), summary, origin=origin, title=source.title, changes="always"
    )
    return Draft(source, segment, withheld)


def blank_draft(source: Source, origin: str) -> Draft:
    """A search that is not made, because there is nothing to look for."""
    return _nothing(source, origin, "the query is blank")


def _nothing(source: Share, origin: str, why: str, withheld: Iterable[Withheld] = ()) -> Draft:
    return Draft(source, None, (*withheld, Withheld(origin, "empty", why)))
