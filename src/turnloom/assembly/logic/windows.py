"""Windows of what was said: how much is shown as it is, and what is before that."""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from turnloom.assembly.events import HistorySummarised, Span, Withheld
from turnloom.assembly.logic.frames import EMPTY, spoken
from turnloom.assembly.spec.messages import Message
from turnloom.assembly.spec.segments import HistorySummary
from turnloom.assembly.spec.sources import HistorySource
from turnloom.kernel.digests import chain


class Window(NamedTuple):
    """How many messages are before those that are shown, and why those are not shown."""

    outside: int
    reason: str


def window_of(
    source: HistorySource, said: Sequence[Message], count: Callable[[str], int]
) -> Window:
    """The window of a source: the last messages, as many of them as have so many tokens."""
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
    """The span of messages, or of those behind a span together with it; tokens are not counted."""
    first, last, count, _, digest = (
        (0, 0, 0, 0, EMPTY)
        if before is None
        else (before.first, before.last, before.count, 0, before.digest)
    )
    for each in messages:
        first, last, count = first or each.seq, each.seq, count + 1
        digest = chain(digest, spoken(each.author, each.text))
    return Span(first, last, count, 0, digest)


def summary_of(fact: HistorySummarised) -> HistorySummary:
    """The summary that is on record."""
    return HistorySummary(
        fact.text, fact.first, fact.last, fact.count, fact.digest, fact.visibility
    )


def outside_of(origin: str, span: Span, reason: str, summarised: bool) -> Withheld:
    """What tells of the messages before a window."""
    detail = f"{span.count} messages" + (", summarised" if summarised else "")
    return Withheld(f"{origin}: events {span.first} to {span.last}", reason, detail)
