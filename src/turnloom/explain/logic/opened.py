"""A recorded frame, opened: its segments in the order they were sent, and whether it is sound."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

import msgspec

from turnloom.agents.logic.folding import hear
from turnloom.agents.spec import RunState
from turnloom.assembly.events import ContextGathered, FrameAssembled, Segment, Withheld
from turnloom.assembly.logic import BESIDE, COUNTER, SOURCED, frame, piece, spoken, view
from turnloom.assembly.logic.pieces import context_pieces, input_pieces
from turnloom.assembly.spec import Message, Piece
from turnloom.board.spec import Artifact
from turnloom.explain.logic.calls import part_of
from turnloom.explain.logic.frames import Frames, Sighted
from turnloom.explain.spec.text import counted
from turnloom.explain.spec.turn import Said, Shown
from turnloom.log.spec import Event

# Kinds of segments that show what the agent was given, and what was gathered besides.
INPUT = frozenset({"input"})
GIVEN = INPUT | {"context", "artifact"}


class Opened(NamedTuple):
    """A recorded frame with everything it refers to.

    `given` is what it is to show of what was gathered and of what the agent was given; where the
    log leaves open who gathered it, one of these.
    """

    seq: int
    recorded: FrameAssembled
    sighted: Sighted
    texts: list[str]
    heard: list[Message]
    given: list[list[Piece]]


def open_frames(
    events: Sequence[Event], own: Sequence[Event], inputs: Sequence[Artifact]
) -> dict[int, Opened]:
    """The frames of a turn that is given inputs, opened: the first, and those of engines that have
    their own, by the place of the engine."""
    frames = (event for event in own if isinstance(event.data, FrameAssembled))
    return {part_of(at.id).engine: _open(events, own, inputs, at) for at in frames}


def _open(
    events: Sequence[Event], own: Sequence[Event], inputs: Sequence[Artifact], at: Event
) -> Opened:
    recorded: FrameAssembled = at.data
    frames = Frames(event for event in events if event.seq <= at.seq)
    sighted = frames.sighted(recorded) or Sighted((), ())
    texts = [frames.texts.get(segment.digest, "") for segment in sighted.segments]
    known = defaultdict(str, frames.texts)
    whole = not _is_sourced(sighted.segments)
    given = [
        [
            *(context_pieces(each, known) if each and whole else ()),
            *input_pieces(inputs, each, known),
        ]
        for each in _gathered(own, at)
    ]
    return Opened(at.seq, recorded, sighted, texts, frames.heard(recorded), given)


def _is_sourced(segments: Sequence[Segment]) -> bool:
    """Whether the context was assembled from sources: then it is more than what was gathered."""
    return any(each.kind in SOURCED for each in segments)


def _gathered(own: Sequence[Event], at: Event) -> Sequence[ContextGathered | None]:
    """What may have been gathered for a frame: for its engine, or else for another one too."""
    before = [event for event in own if event.seq < at.seq]
    found = [event for event in before if isinstance(event.data, ContextGathered)]
    exact = [event for event in found if part_of(event.id) == part_of(at.id)]
    return [event.data for event in exact or found] or (None,)


def shown(opened: Opened) -> list[Shown]:
    """The segments as they were sent: the system text, what was said, the context, the schemas."""
    listed = list(zip(opened.sighted.segments, opened.texts, strict=True))
    whole = opened.recorded.tokens or 1
    return [
        *(_shown(each, text, whole) for each, text in listed if each.kind not in BESIDE),
        *_history(opened, whole),
        *(_shown(each, text, whole) for each, text in listed if each.kind in BESIDE),
    ]


def _shown(each: Segment, text: str, whole: int) -> Shown:
    share = _share(each.tokens, whole)
    return Shown(each.kind, each.origin, each.reason, each.tokens, share, each.digest, text)


def _share(tokens: int, whole: int) -> float:
    return round(100 * tokens / whole, 1)


def _history(opened: Opened, whole: int) -> Iterator[Shown]:
    history, heard = opened.recorded.history, opened.heard
    if history.count:
        yield Shown(
            "history",
            f"events {history.first} to {history.last}",
            f"what was said so far, {counted(history.count, 'message')}",
            history.tokens,
            _share(history.tokens, whole),
            history.digest,
            "".join(spoken(message.author, message.text) for message in heard),
            tuple(Said(each.seq, each.author, each.text) for each in heard),
        )


def frame_doubts(opened: Opened) -> Iterator[str]:
    """Every way in which the record of a frame contradicts itself: digests are computed again."""
    recorded, sighted = opened.recorded, opened.sighted
    pairs = zip(sighted.segments, opened.texts, strict=True)
    pieces = [_again(segment, text, recorded.counter) for segment, text in pairs]
    yield from _piece_doubts(sighted.segments, pieces)
    yield from _whole_doubts(recorded, pieces, sighted.withheld, opened.heard)
    yield from _given_doubts(sighted.segments, opened.given)


def _given_doubts(segments: Sequence[Segment], given: Sequence[Sequence[Piece]]) -> Iterator[str]:
    """What the frame shows that is neither what was gathered nor what the agent was given."""
    kinds = INPUT if _is_sourced(segments) else GIVEN
    shown = [f"{each.origin} ({each.digest})" for each in segments if each.kind in kinds]
    ways = [[f"{each.origin} ({each.digest})" for each in pieces] for pieces in given]
    if shown not in ways:
        for said, again in zip_longest(shown, ways[0], fillvalue="nothing"):
            if said != again:
                yield f"{said} is shown, and {again} was gathered or given"


def _again(segment: Segment, text: str, counter: str) -> Piece:
    """The piece that a segment is of; the tokens of another counter are believed."""
    made = piece(segment.kind, segment.origin, text, segment.reason)
    return made if counter == COUNTER else made._replace(tokens=segment.tokens)


def _piece_doubts(segments: Sequence[Segment], pieces: Sequence[Piece]) -> Iterator[str]:
    for number, (segment, again) in enumerate(zip(segments, pieces, strict=True), 1):
        where = f"segment {number} ({segment.origin})"
        if segment.digest != again.digest:
            yield f"{where} is recorded as {segment.digest}, and its text is {again.digest}"
        elif segment.tokens != again.tokens:
            yield f"{where} is recorded with {segment.tokens} tokens, and has {again.tokens}"


def _whole_doubts(
    recorded: FrameAssembled,
    pieces: Sequence[Piece],
    withheld: Sequence[Withheld],
    heard: Sequence[Message],
) -> Iterator[str]:
    state = RunState("")
    for message in heard:
        hear(state, *message)
    history = state.history
    if recorded.counter != COUNTER:  # the tokens of another counter are believed
        history = msgspec.structs.replace(history, tokens=recorded.history.tokens)
    again = frame(recorded.turn, recorded.agent, view(pieces, withheld), history, 0, {})
    pairs: list[tuple[str, Any, Any]] = [
        ("view", recorded.view, again.view),
        ("history", recorded.history.digest, again.history.digest),
        ("number of messages", recorded.history.count, again.history.count),
        ("digest", recorded.digest, again.digest),
    ]
    if recorded.counter == COUNTER or not recorded.as_in:
        pairs.append(("number of tokens", recorded.tokens, again.tokens))
    for what, said, found in pairs:
        if said != found:
            yield f"the {what} is recorded as {said}, and is {found} when computed again"
