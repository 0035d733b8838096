"""Explain a turn from the log: its frames, its model calls and its outcome."""

from bisect import bisect_left, bisect_right
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
    """The model calls of one engine in one try, and the exchanges passed to the last of them.

    The exchanges begin with one for each earlier engine.
    """

    part: Part
    calls: list[CallEvents]
    exchanges: tuple[Exchange, ...]


def engine_attempts(found: Sequence[CallEvents]) -> list[EngineAttempt]:
    """Group the model calls of a turn by part, in the order they began."""
    by_part: dict[Part, list[CallEvents]] = {}
    for call in found:
        if isinstance(call.events[0].data, ModelCalled):
            by_part.setdefault(part_of(call.key), []).append(call)
    return [
        EngineAttempt(part, calls, (*_passed_on(part, by_part), *_exchanges(calls, found)))
        for part, calls in by_part.items()
    ]


def _passed_on(part: Part, by_part: Mapping[Part, Sequence[CallEvents]]) -> Iterator[Exchange]:
    """Yield the exchanges that earlier engines passed on."""
    for engine in range(part.engine):
        *_, last = by_part[part._replace(engine=engine)]
        yield passed_on([event.data for event in last.events])


def _exchanges(calls: Sequence[CallEvents], found: Sequence[CallEvents]) -> Iterator[Exchange]:
    """Yield the exchanges that each model call but the last left to its successors."""
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


def request_doubts(attempt: EngineAttempt, frame: str) -> Iterator[str]:
    """Yield each call whose request does not match the frame and the exchanges before it."""
    part = f"{attempt.part.name}, " if attempt.part.name else ""
    counts = exchanges_given(attempt.calls)
    for number, call in enumerate(attempt.calls, 1):
        given = counts[call.key]
        said, again = call.events[0].data.request, request(frame, attempt.exchanges[:given])
        if said != again:
            with_what = f"the frame and {counted(given, 'exchange')}" if given else "this frame"
            asked = f"{part}model call {number} has request {said}"
            yield f"{asked}, but the request of {with_what} is {again}"


# Kinds of segments that show the input of the agent, and gathered context.
INPUT = frozenset({"input"})
GIVEN = INPUT | {"context", "artifact"}


class OpenedFrame(NamedTuple):
    """A recorded frame with everything it refers to.

    `given` lists the expected pieces of context and input. It has several entries if the log does
    not tell which gathering belongs to the frame.
    """

    seq: int
    recorded: FrameAssembled
    frame_view: FrameView
    texts: list[str]
    messages: list[Message]
    given: list[list[Piece]]


class TurnLog:
    """The log of a run as its turns need it: what several turns have in common is read once."""

    def __init__(self, events: Sequence[Event]) -> None:
        self.events = events
        self.artifacts = ArtifactHistory(events)
        self._by_turn: dict[int | None, list[Event]] = defaultdict(list)
        self._frames, self._read = Frames(), 0
        for event in events:
            self._by_turn[turn_of(event)].append(event)

    def frames_at(self, seq: int) -> Frames:
        """The texts and messages up to an event; going back reads the log again."""
        if self._read and self.events[self._read - 1].seq > seq:
            self._frames, self._read = Frames(), 0
        while self._read < len(self.events) and self.events[self._read].seq <= seq:
            self._frames.take(self.events[self._read])
            self._read += 1
        return self._frames

    def events_of(self, started: Event) -> list[Event]:
        """The events of a turn: those under its key, and events of the run while it was open.

        On a board turns overlap, so an event without the key of a turn belongs to none, except a
        search or summary made for this turn.
        """
        turn = started.data.turn
        own, others = self._by_turn[turn], self._by_turn[None]
        if is_board(self.events):
            beside = [event for event in self.events if _is_for(event, turn)]
        else:
            ended = (each.seq for each in own if isinstance(each.data, TurnFinished))
            first, last = started.seq, next(ended, self.events[-1].seq + 1)
            beside = others[
                bisect_left(others, first, key=_seq) : bisect_left(others, last, key=_seq)
            ]
        return sorted({event.seq: event for event in (*own, *beside)}.values(), key=_seq)


def _seq(event: Event) -> int:
    return event.seq


def open_frames(
    log: TurnLog, own: Sequence[Event], inputs: Sequence[Artifact]
) -> dict[int, OpenedFrame]:
    """Open the frames of a turn by engine: the first, and those of engines with separate frames."""
    frames = (event for event in own if isinstance(event.data, FrameAssembled))
    return {part_of(at.id).engine: _open(log, own, inputs, at) for at in frames}


def _open(log: TurnLog, own: Sequence[Event], inputs: Sequence[Artifact], at: Event) -> OpenedFrame:
    recorded: FrameAssembled = at.data
    frames = log.frames_at(at.seq)
    frame_view = frames.view_of(recorded) or FrameView((), ())
    texts = [frames.texts.get(segment.digest, "") for segment in frame_view.segments]
    known = defaultdict(str, frames.texts)
    whole = not _is_sourced(frame_view.segments)
    given = [
        [
            *(context_pieces(each, known) if each and whole else ()),
            *input_pieces(inputs, each, known),
        ]
        for each in _gathered(own, at)
    ]
    return OpenedFrame(
        at.seq, recorded, frame_view, texts, messages=frames.messages_of(recorded), given=given
    )


def _is_sourced(segments: Sequence[Segment]) -> bool:
    """Whether the context was assembled from sources, and so contains more than was gathered."""
    return any(each.kind in SOURCED for each in segments)


def _gathered(own: Sequence[Event], at: Event) -> Sequence[ContextGathered | None]:
    """The contexts that may belong to a frame: those of its engine, otherwise those of any
    engine."""
    before = [event for event in own if event.seq < at.seq]
    found = [event for event in before if isinstance(event.data, ContextGathered)]
    exact = [event for event in found if part_of(event.id) == part_of(at.id)]
    return [event.data for event in exact or found] or (None,)


def shown(opened: OpenedFrame) -> list[ShownSegment]:
    """The segments in the order they were sent: system text, history, context, tool schemas."""
    listed = list(zip(opened.frame_view.segments, opened.texts, strict=True))
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
    history, messages = opened.recorded.history, opened.messages
    if history.count:
        yield ShownSegment(
            "history",
            f"events {history.first} to {history.last}",
            f"the conversation so far, {counted(history.count, 'message')}",
            history.tokens,
            share=_share(history.tokens, whole),
            digest=history.digest,
            text="".join(spoken(message.author, message.text) for message in messages),
            messages=tuple(ShownMessage(each.seq, each.author, each.text) for each in messages),
        )


def frame_doubts(opened: OpenedFrame) -> Iterator[str]:
    """Recompute the digests of a frame and yield each contradiction."""
    recorded, frame_view = opened.recorded, opened.frame_view
    pairs = zip(frame_view.segments, opened.texts, strict=True)
    pieces = [_reopened(segment, text, recorded.counter) for segment, text in pairs]
    yield from _piece_doubts(frame_view.segments, pieces)
    yield from _whole_doubts(recorded, pieces, frame_view.withheld, opened.messages)
    yield from _given_doubts(frame_view.segments, opened.given)


def _given_doubts(segments: Sequence[Segment], given: Sequence[Sequence[Piece]]) -> Iterator[str]:
    """Yield the segments that match neither gathered context nor input."""
    kinds = INPUT if _is_sourced(segments) else GIVEN
    shown = [f"{each.origin} ({each.digest})" for each in segments if each.kind in kinds]
    ways = [[f"{each.origin} ({each.digest})" for each in pieces] for pieces in given]
    if shown not in ways:
        for said, again in zip_longest(shown, ways[0], fillvalue="nothing"):
            if said != again:
                yield f"{said} is shown, but {again} was gathered or given"


def _reopened(segment: Segment, text: str, counter: str) -> Piece:
    """Rebuild the piece of a segment; token counts of another counter cannot be recomputed."""
    made = piece(segment.kind, segment.origin, text, segment.reason)
    return made if counter == COUNTER else made._replace(tokens=segment.tokens)


def _piece_doubts(segments: Sequence[Segment], pieces: Sequence[Piece]) -> Iterator[str]:
    for number, (segment, again) in enumerate(zip(segments, pieces, strict=True), 1):
        where = f"segment {number} ({segment.origin})"
        if segment.digest != again.digest:
            yield f"{where} is recorded as {segment.digest}, but its text has {again.digest}"
        elif segment.tokens != again.tokens:
            yield f"{where} is recorded with {segment.tokens} tokens, but has {again.tokens}"


def _whole_doubts(
    recorded: FrameAssembled,
    pieces: Sequence[Piece],
    withheld: Sequence[Withheld],
    messages: Sequence[Message],
) -> Iterator[str]:
    state = RunState("")
    for message in messages:
        add_message(state, *message)
    history = state.history
    if recorded.counter != COUNTER:  # cannot be recomputed here
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
            yield f"the {what} is recorded as {said}, but recomputed as {found}"


# The part that is the turn itself, unless it has several tries.
WHOLE = Part(None, 0)


def explain_turn(events: Sequence[Event], number: int, agent: str | None = None) -> TurnExplained:
    """Explain the exact frame of a turn and what the turn did; with `agent`, count only its turns.

    Raises:
        UsageError: there is no such turn.
    """
    return _explain(TurnLog(events), find_turn(events, number, agent))


def explain_turns(events: Sequence[Event]) -> Iterator[TurnExplained]:
    """Explain every turn of a run, in their order."""
    log = TurnLog(events)
    for event in events:
        if isinstance(event.data, TurnStarted):
            yield _explain(log, event)


def _explain(log: TurnLog, started: Event) -> TurnExplained:
    events, artifacts = log.events, log.artifacts
    own = log.events_of(started)
    taken = next((event for event in own if isinstance(event.data, ArtifactConsumed)), None)
    inputs = artifacts.whole(taken.data.artifacts) if taken else ()
    frames, found = open_frames(log, own, inputs), calls(own)
    asked = engine_attempts(found)
    doubts = tuple(_doubts(frames, asked)) if frames else ()
    ended = next((event for event in own if isinstance(event.data, TurnFinished)), None)
    return TurnExplained(
        run=events[-1].run,
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


def find_turn(events: Sequence[Event], number: int, agent: str | None = None) -> Event:
    """Find the event that began a turn; with `agent`, count only its turns.

    Raises:
        UsageError: there is no such turn.
    """
    started = [event for event in events if isinstance(event.data, TurnStarted)]
    of_agent = [event for event in started if agent in (None, event.data.agent)]
    if agent is not None and not of_agent:
        known = sorted({event.data.agent for event in started})
        hint = nearest(agent, known)
        remedy = (
            f"Did you mean {hint!r}?"
            if hint
            else f"Agents with turns: {', '.join(known) or 'none'}."
        )
        raise UsageError(f"Agent {agent!r} had no turn in this run. {remedy}")
    if not 1 <= number <= len(of_agent):
        owner = f" of {agent!r}" if agent else ""
        have = f"1 to {len(of_agent)}" if of_agent else "none"
        raise UsageError(f"Unknown turn {number}{owner}. Turns in this run: {have}.")
    return of_agent[number - 1]


def _is_for(event: Event, turn: int) -> bool:
    """Whether a search or summary was first made for this turn."""
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
        opened.frame_view.withheld,
        tokens=recorded.tokens,
        counter=recorded.counter,
        digest=recorded.digest,
        prompt="".join(segment.text for segment in segments),
        visibility=recorded.visibility,
    )


def _frame_of(part: Part, frames: Mapping[int, OpenedFrame]) -> OpenedFrame:
    """The frame of a part: that of its engine, otherwise the shared one."""
    return frames.get(part.engine) or frames[0]


def _part(attempt: EngineAttempt, frames: Mapping[int, OpenedFrame]) -> PartExplained:
    frame = _frame_of(attempt.part, frames)
    own = None if frame.recorded.digest == frames[0].recorded.digest else _framed(frame)
    return PartExplained(attempt.part.name, own, attempt.exchanges)


def _doubts(frames: Mapping[int, OpenedFrame], asked: Sequence[EngineAttempt]) -> Iterator[str]:
    """Yield every contradiction in the record of the turn."""
    for opened in frames.values():
        yield from frame_doubts(opened)
    for each in asked:
        yield from request_doubts(each, _frame_of(each.part, frames).recorded.digest)


def _woken(taken: Event, artifacts: ArtifactHistory) -> WakeReason:
    fact: ArtifactConsumed = taken.data
    named = tuple(artifacts.named(id) for id in fact.artifacts)
    return WakeReason(taken.seq, fact.subscription, named, fact.retry_of)


def _onward(events: Sequence[Event], after: int, turn: TurnStarted) -> NextMove | None:
    """The next move after a turn; on a board only a retry, as its artifacts show the rest."""
    later = events[bisect_right(events, after, key=_seq) :]
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
    """The retry of a failed turn, with its number once it was taken."""
    taken = (event.data for event in later if isinstance(event.data, ArtifactConsumed))
    turn = next((fact.turn for fact in taken if fact.retry_of == asked.data.turn), 0)
    return NextMove(asked.seq, asked.kind, f"turn {turn}" if turn else "", describe(asked.data))
