"""A turn from the log: its frames, its model calls, and what came of it."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

import msgspec

from turnloom.agents.events import (
    ModelAnswered,
    ModelCalled,
    ToolFailed,
    ToolReturned,
    TurnFinished,
    TurnStarted,
)
from turnloom.agents.logic.dialogues import exchange_of, passed_on, request
from turnloom.agents.logic.folding import add_message
from turnloom.agents.spec import Exchange, RunState, Usage
from turnloom.assembly.events import (
    ContextGathered,
    FrameAssembled,
    HistorySummarised,
    RetrievalSearched,
    Segment,
    Withheld,
)
from turnloom.assembly.logic import BESIDE, COUNTER, SOURCED, frame, piece, spoken, view
from turnloom.assembly.logic.frames import context_pieces, input_pieces
from turnloom.assembly.spec import Message, Piece
from turnloom.board.events import ArtifactConsumed
from turnloom.board.spec import Artifact
from turnloom.conversation.events import RouteDecided
from turnloom.errors import UsageError
from turnloom.explain.logic.artifacts import ArtifactHistory, is_board
from turnloom.explain.logic.describe import describe
from turnloom.explain.logic.flow_routes import after_turn, is_flow
from turnloom.explain.logic.frames import (
    Frames,
    FrameView,
    Part,
    model_call_of,
    part_of,
    place_of,
    turn_of,
)
from turnloom.explain.logic.steps import CallEvents, calls, exchanges_given, steps
from turnloom.explain.spec.board import WakeReason
from turnloom.explain.spec.text import counted
from turnloom.explain.spec.turn import (
    NO_FRAME,
    NextMove,
    PartExplained,
    ShownFrame,
    ShownMessage,
    ShownSegment,
    TurnExplained,
)
from turnloom.kernel.values import nearest
from turnloom.log.events import ENDS
from turnloom.log.spec import Event
from turnloom.reaction.events import RetryAsked


class EngineAttempt(NamedTuple):
    """The calls of one engine in one try, and the exchanges that the last of them was given.

    The first of these are of the engines before it: one for each.
    """

    part: Part
    calls: list[CallEvents]
    exchanges: tuple[Exchange, ...]


def askings(found: Sequence[CallEvents]) -> list[EngineAttempt]:
    """The model calls of a turn by their part of it, in the order they began."""
    by_part: dict[Part, list[CallEvents]] = {}
    for call in found:
        if isinstance(call.events[0].data, ModelCalled):
            by_part.setdefault(part_of(call.key), []).append(call)
    return [
        EngineAttempt(part, calls, (*_passed_on(part, by_part), *_exchanges(calls, found)))
        for part, calls in by_part.items()
    ]


def _passed_on(part: Part, by_part: Mapping[Part, Sequence[CallEvents]]) -> Iterator[Exchange]:
    """What the engines before this one left for it."""
    for engine in range(part.engine):
        *_, last = by_part[part._replace(engine=engine)]
        yield passed_on([event.data for event in last.events])


def _exchanges(calls: Sequence[CallEvents], found: Sequence[CallEvents]) -> Iterator[Exchange]:
    """What each model call but the last left for those behind it."""
    for call in calls[:-1]:
        answered = call.one(ModelAnswered)
        said = [event.data for event in call.events]
        tools = [each for each in found if model_call_of(each.key) == call.key]
        outcomes = [
            ended[1]
            for each in sorted(tools, key=lambda tool: place_of(tool.key))
            if (ended := each.one(ToolReturned, ToolFailed))
        ]
        if answered and (exchange := exchange_of(answered[1], said, outcomes)) is not None:
            yield from (*answered[1].before, exchange)


def asking_doubts(asking: EngineAttempt, frame: str) -> Iterator[str]:
    """Every call that was asked with something else than the frame and the exchanges before it."""
    part = f"{asking.part.name}, " if asking.part.name else ""
    counts = exchanges_given(asking.calls)
    for number, call in enumerate(asking.calls, 1):
        given = counts[call.key]
        said, again = call.events[0].data.request, request(frame, asking.exchanges[:given])
        if said != again:
            with_what = f"the frame and {counted(given, 'exchange')}" if given else "this frame"
            asked = f"{part}model call {number} was asked with request {said}"
            yield f"{asked}, and {with_what} is {again}"


# Kinds of segments that show what the agent was given, and what was gathered besides.
INPUT = frozenset({"input"})
GIVEN = INPUT | {"context", "artifact"}


class OpenedFrame(NamedTuple):
    """A recorded frame with everything it refers to.

    `given` is what it is to show of what was gathered and of what the agent was given; where the
    log leaves open who gathered it, one of these.
    """

    seq: int
    recorded: FrameAssembled
    sighted: FrameView
    texts: list[str]
    heard: list[Message]
    given: list[list[Piece]]


def open_frames(
    events: Sequence[Event], own: Sequence[Event], inputs: Sequence[Artifact]
) -> dict[int, OpenedFrame]:
    """The frames of a turn that is given inputs, opened: the first, and those of engines that have
    their own, by the place of the engine."""
    frames = (event for event in own if isinstance(event.data, FrameAssembled))
    return {part_of(at.id).engine: _open(events, own, inputs, at) for at in frames}


def _open(
    events: Sequence[Event], own: Sequence[Event], inputs: Sequence[Artifact], at: Event
) -> OpenedFrame:
    recorded: FrameAssembled = at.data
    frames = Frames(event for event in events if event.seq <= at.seq)
    sighted = frames.sighted(recorded) or FrameView((), ())
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
    return OpenedFrame(at.seq, recorded, sighted, texts, heard=frames.heard(recorded), given=given)


def _is_sourced(segments: Sequence[Segment]) -> bool:
    """Whether the context was assembled from sources: then it is more than what was gathered."""
    return any(each.kind in SOURCED for each in segments)


def _gathered(own: Sequence[Event], at: Event) -> Sequence[ContextGathered | None]:
    """What may have been gathered for a frame: for its engine, or else for another one too."""
    before = [event for event in own if event.seq < at.seq]
    found = [event for event in before if isinstance(event.data, ContextGathered)]
    exact = [event for event in found if part_of(event.id) == part_of(at.id)]
    return [event.data for event in exact or found] or (None,)


def shown(opened: OpenedFrame) -> list[ShownSegment]:
    """The segments as they were sent: the system text, what was said, the context, the schemas."""
    listed = list(zip(opened.sighted.segments, opened.texts, strict=True))
    whole = opened.recorded.tokens or 1
    return [
        *(_shown(each, text, whole) for each, text in listed if each.kind not in BESIDE),
        *_history(opened, whole),
        *(_shown(each, text, whole) for each, text in listed if each.kind in BESIDE),
    ]


def _shown(each: Segment, text: str, whole: int) -> ShownSegment:
    share = _share(each.tokens, whole)
    return ShownSegment(
        each.kind, each.origin, each.reason, each.tokens, share=share, digest=each.digest, text=text
    )


def _share(tokens: int, whole: int) -> float:
    return round(100 * tokens / whole, 1)


def _history(opened: OpenedFrame, whole: int) -> Iterator[ShownSegment]:
    history, heard = opened.recorded.history, opened.heard
    if history.count:
        yield ShownSegment(
            "history",
            f"events {history.first} to {history.last}",
            f"what was said so far, {counted(history.count, 'message')}",
            history.tokens,
            share=_share(history.tokens, whole),
            digest=history.digest,
            text="".join(spoken(message.author, message.text) for message in heard),
            messages=tuple(ShownMessage(each.seq, each.author, each.text) for each in heard),
        )


def frame_doubts(opened: OpenedFrame) -> Iterator[str]:
    """Every way in which the record of a frame contradicts itself: digests are computed again."""
    recorded, sighted = opened.recorded, opened.sighted
    pairs = zip(sighted.segments, opened.texts, strict=True)
    pieces = [_reopened(segment, text, recorded.counter) for segment, text in pairs]
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


def _reopened(segment: Segment, text: str, counter: str) -> Piece:
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
        add_message(state, *message)
    history = state.history
    if recorded.counter != COUNTER:  # the tokens of another counter are believed
        history = msgspec.structs.replace(history, tokens=recorded.history.tokens)
    again = frame(recorded.turn, recorded.agent, view(pieces, withheld), history, as_in=0, known={})
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


# The part of a turn that is the turn itself, unless there are several tries.
WHOLE = Part(None, 0)


def explain_turn(events: Sequence[Event], number: int, agent: str | None = None) -> TurnExplained:
    """What a turn was shown, to the byte, and what it did; with `agent`, its turns are counted.

    Raises:
        UsageError: there is no such turn.
    """
    started, artifacts = _find(events, number, agent), ArtifactHistory(events)
    own = _events_of(events, started)
    taken = next((event for event in own if isinstance(event.data, ArtifactConsumed)), None)
    inputs = artifacts.whole(taken.data.artifacts) if taken else ()
    frames, found = open_frames(events, own, inputs), calls(own)
    asked = askings(found)
    doubts = tuple(_doubts(frames, asked)) if frames else ()
    ended = next((event for event in own if isinstance(event.data, TurnFinished)), None)
    return TurnExplained(
        run=started.run,
        turn=started.data.turn,
        agent=started.data.agent,
        status=ended.data.status if ended else "open",
        error=ended.data.error if ended else "",
        **msgspec.structs.asdict(_framed(frames[0]) if frames else NO_FRAME),
        verified=not doubts,
        doubts=doubts,
        exchanges=next((each.exchanges for each in asked if each.part == WHOLE), ()),
        steps=tuple(steps(found, artifacts)),
        usage=_used(own),
        seconds=(ended.at - started.at).total_seconds() if ended else None,
        onward=_onward(events, own[-1].seq, started.data) if ended else None,
        woken=_woken(taken, artifacts) if taken else None,
        parts=tuple(_part(each, frames) for each in asked if each.part != WHOLE),
    )


def _find(events: Sequence[Event], number: int, agent: str | None) -> Event:
    """The event that began the turn."""
    started = [event for event in events if isinstance(event.data, TurnStarted)]
    of_agent = [event for event in started if agent in (None, event.data.agent)]
    if agent is not None and not of_agent:
        known = sorted({event.data.agent for event in started})
        hint = nearest(agent, known)
        remedy = f"Did you mean {hint!r}?" if hint else f"These had: {', '.join(known) or 'none'}."
        raise UsageError(f"Agent {agent!r} had no turn in this run. {remedy}")
    if not 1 <= number <= len(of_agent):
        whose = f"of {agent!r} " if agent else ""
        have = f"1 to {len(of_agent)}" if of_agent else "none"
        raise UsageError(f"There is no turn {number} {whose}in this run. Turns: {have}.")
    return of_agent[number - 1]


def _events_of(events: Sequence[Event], started: Event) -> list[Event]:
    """What belongs to a turn: events under its key, and what else happened to the run meanwhile.

    On a board, others take turns meanwhile, and what has no turn's key is no turn's affair, but
    for what was looked up for it and holds for the whole run.
    """
    turn, own, going = started.data.turn, list[Event](), False
    if is_board(events):
        return [event for event in events if turn_of(event) == turn or _is_for(event, turn)]
    for event in events:
        whose = turn_of(event)
        going = going or event.seq == started.seq
        if whose == turn or (going and whose is None):
            own.append(event)
        if isinstance(event.data, TurnFinished) and event.data.turn == turn:
            going = False
    return own


def _is_for(event: Event, turn: int) -> bool:
    """Whether something was looked up for this turn first."""
    fact = event.data
    return isinstance(fact, RetrievalSearched | HistorySummarised) and fact.turn == turn


def _used(own: Sequence[Event]) -> Usage:
    answers = (event.data for event in own if isinstance(event.data, ModelAnswered))
    return sum((answer.usage for answer in answers), Usage())


def _framed(opened: OpenedFrame) -> ShownFrame:
    recorded, segments = opened.recorded, tuple(shown(opened))
    return ShownFrame(
        opened.seq,
        recorded.as_in,
        segments,
        opened.sighted.withheld,
        tokens=recorded.tokens,
        counter=recorded.counter,
        digest=recorded.digest,
        prompt="".join(segment.text for segment in segments),
        visibility=recorded.visibility,
    )


def _frame_of(part: Part, frames: Mapping[int, OpenedFrame]) -> OpenedFrame:
    """The frame of a part: its engine's own, or that which all engines have."""
    return frames.get(part.engine) or frames[0]


def _part(asking: EngineAttempt, frames: Mapping[int, OpenedFrame]) -> PartExplained:
    frame = _frame_of(asking.part, frames)
    own = None if frame.recorded.digest == frames[0].recorded.digest else _framed(frame)
    return PartExplained(asking.part.name, own, asking.exchanges)


def _doubts(frames: Mapping[int, OpenedFrame], asked: Sequence[EngineAttempt]) -> Iterator[str]:
    """Every way in which the record contradicts itself."""
    for opened in frames.values():
        yield from frame_doubts(opened)
    for each in asked:
        yield from asking_doubts(each, _frame_of(each.part, frames).recorded.digest)


def _woken(taken: Event, artifacts: ArtifactHistory) -> WakeReason:
    fact: ArtifactConsumed = taken.data
    named = tuple(artifacts.named(id) for id in fact.artifacts)
    return WakeReason(taken.seq, fact.subscription, named, fact.retry_of)


def _onward(events: Sequence[Event], after: int, turn: TurnStarted) -> NextMove | None:
    """Where the work went after a turn; on a board its artifacts say it, unless it failed."""
    later = [event for event in events if event.seq > after]
    if is_board(events):
        return next((_again(event, later) for event in later if _is_retry(event, turn)), None)
    if is_flow(events):
        found = after_turn(events, later, turn.turn)
        return found and NextMove(found.seq, found.kind, "", describe(found.data))
    for event in later:
        if isinstance(event.data, RouteDecided) and event.data.source == turn.agent:
            return NextMove(event.seq, event.kind, event.data.target, event.data.reason)
        if event.kind in ENDS:
            return NextMove(event.seq, event.kind, "", describe(event.data))
    return None


def _is_retry(event: Event, turn: TurnStarted) -> bool:
    return isinstance(event.data, RetryAsked) and event.data.turn == turn.turn


def _again(asked: Event, later: Sequence[Event]) -> NextMove:
    """The turn that was taken in place of one that failed, if it has been."""
    taken = (event.data for event in later if isinstance(event.data, ArtifactConsumed))
    turn = next((fact.turn for fact in taken if fact.retry_of == asked.data.turn), 0)
    return NextMove(asked.seq, asked.kind, f"turn {turn}" if turn else "", describe(asked.data))
