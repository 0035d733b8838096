"""Explain a turn with another threshold of one of its searches."""

from collections.abc import Iterator, Sequence

from turnloom.assembly.events import FrameAssembled, RetrievalSearched, Segment
from turnloom.errors import UsageError
from turnloom.explain.spec.what_if import ChangedSegment, WhatIf
from turnloom.log.spec import Event
from turnloom.runtime.backtest.comparing import whole_frame
from turnloom.runtime.backtest.spec import BacktestedRun, EditedThreshold

# The certainty of a frame that would have been the same.
SAME = ""


def until_frame(events: Sequence[Event], turn: int) -> list[Event]:
    """The events of a run up to the frame of a turn.

    Raises:
        UsageError: the turn was shown nothing.
    """
    for place, event in enumerate(events):
        if isinstance(event.data, FrameAssembled) and event.data.turn == turn:
            return [*events[: place + 1]]
    raise UsageError(f"Turn {turn} has no frame. Choose a turn that was shown something.")


def edited_threshold(events: Sequence[Event], search: int, min_relevance: float) -> EditedThreshold:
    """The edit of a search, which is the event of this number.

    Raises:
        UsageError: the event is no search, or comes after the frame.
    """
    found = next((each.data for each in events if each.seq == search), None)
    if not isinstance(found, RetrievalSearched):
        known = [str(each.seq) for each in events if isinstance(each.data, RetrievalSearched)]
        raise UsageError(
            f"Event {search} is no search before this turn's frame. "
            f"Searches: {', '.join(known) or 'none'}."
        )
    return EditedThreshold(found, min_relevance)


def explain_what_if(
    events: Sequence[Event], search: int, edit: EditedThreshold, found: BacktestedRun
) -> WhatIf:
    """The last frame of these events beside the one of a backtest."""
    recorded = whole_frame(events, events[-1].data)
    last = found.last_frame
    is_other = last is not None and last.frame.turn == recorded.turn
    decided = last.frame if last is not None and is_other else recorded
    before = {each.origin: each.reason for each in recorded.withheld}
    after = {each.origin for each in decided.withheld}
    others = [each for each in decided.withheld if before.get(each.origin) != each.reason]
    return WhatIf(
        found.run,
        recorded.turn,
        recorded.agent,
        search,
        collection=edit.search.collection,
        min_relevance=edit.search.min_relevance,
        edited_min_relevance=edit.min_relevance,
        certainty=last.certainty if last is not None and is_other else SAME,
        tokens=recorded.tokens,
        edited_tokens=decided.tokens,
        entered=tuple(e.origin for e in recorded.withheld if e.origin not in after),
        left_out=tuple(each for each in others if each.origin not in before),
        otherwise_out=tuple(each for each in others if each.origin in before),
        segments=tuple(_changed(recorded.segments, decided.segments)),
        unknown=last.unknown if last is not None and is_other else (),
        end=found.end.reason if found.end is not None and not is_other else "",
    )


def _changed(before: Sequence[Segment], after: Sequence[Segment]) -> Iterator[ChangedSegment]:
    """Segments that are in one of the frames only, by origin."""
    ours = [each for each in before if each.digest not in {e.digest for e in after}]
    theirs = [each for each in after if each.digest not in {e.digest for e in before}]
    for origin in dict.fromkeys(each.origin for each in (*ours, *theirs)):
        one, other = ([e for e in side if e.origin == origin] for side in (ours, theirs))
        recorded, edited = (sum(e.tokens for e in side) for side in (one, other))
        yield ChangedSegment((*one, *other)[0].kind, origin, recorded, edited)
