"""A turn from the log: the frame as sent, whether the record is sound, what came of it."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

from weft.agents.events import (
    AgentText,
    ModelAnswered,
    ModelCalled,
    ModelFailed,
    TurnFinished,
    TurnStarted,
)
from weft.agents.logic.folding import hear
from weft.agents.spec import RunState
from weft.assembly.events import FrameAssembled, Segment, Withheld
from weft.assembly.logic import COUNTER, frame, piece, spoken, view
from weft.assembly.spec import Message, Piece
from weft.conversation.events import RouteDecided
from weft.errors import UsageError
from weft.explain.logic.frames import Frames, Sighted
from weft.explain.logic.words import words
from weft.explain.spec.turn import (
    Became,
    Call,
    Onward,
    Said,
    Shown,
    Spoken,
    TurnExplained,
)
from weft.kernel.values import nearest
from weft.log.events import ENDS
from weft.log.spec import Event
from weft.variables.events import ContextChanged

T = TypeVar("T")


def explain_turn(events: Sequence[Event], number: int, agent: str | None = None) -> TurnExplained:
    """What a turn was shown, to the byte, and what it did; with `agent`, its turns are counted.

    Raises:
        UsageError: there is no such turn, or it has no frame.
    """
    started = _find(events, number, agent)
    own = _events_of(events, started.data.turn)
    opened = _open(events, own)
    recorded = opened.recorded
    called, ended = _one(own, ModelCalled), _one(own, TurnFinished)
    doubts = tuple(_doubts(opened, called))
    segments = tuple(_segments(opened))
    return TurnExplained(
        started.run,
        recorded.turn,
        recorded.agent,
        ended.status if ended else "open",
        opened.seq,
        recorded.as_in,
        segments,
        opened.sighted.withheld,
        recorded.tokens,
        recorded.counter,
        recorded.digest,
        not doubts,
        doubts,
        "".join(segment.text for segment in segments),
        _call(own, called),
        tuple(_said(own)),
        tuple(_changed(own)),
        _onward(events, own[-1].seq, recorded.agent) if ended else None,
    )


class _Opened(NamedTuple):
    """A recorded frame with everything it refers to."""

    seq: int
    recorded: FrameAssembled
    sighted: Sighted
    texts: list[str]
    heard: list[Message]


def _open(events: Sequence[Event], own: Sequence[Event]) -> _Opened:
    """The frame of a turn, opened."""
    at = next((event for event in own if isinstance(event.data, FrameAssembled)), None)
    if at is None:
        raise UsageError("This turn was shown nothing: it has no frame on record.")
    recorded: FrameAssembled = at.data
    frames = Frames(event for event in events if event.seq <= at.seq)
    sighted = frames.sighted(recorded) or Sighted((), ())
    texts = [frames.texts.get(segment.digest, "") for segment in sighted.segments]
    return _Opened(at.seq, recorded, sighted, texts, frames.heard(recorded))


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


def _events_of(events: Sequence[Event], turn: int) -> list[Event]:
    """What belongs to a turn: events that name it, and the changes they caused."""
    found: dict[int, Event] = {}
    for event in events:
        caused = isinstance(event.data, ContextChanged) and event.cause in found
        if caused or getattr(event.data, "turn", None) == turn:
            found[event.seq] = event
    return list(found.values())


def _one(events: Sequence[Event], fact: type[T]) -> T | None:
    return next((event.data for event in events if isinstance(event.data, fact)), None)


def _segments(opened: _Opened) -> Iterator[Shown]:
    recorded, heard = opened.recorded, opened.heard
    whole = recorded.tokens or 1
    for segment, text in zip(opened.sighted.segments, opened.texts, strict=True):
        share = round(100 * segment.tokens / whole, 1)
        yield Shown(
            segment.kind,
            segment.origin,
            segment.reason,
            segment.tokens,
            share,
            segment.digest,
            text,
        )
    history = recorded.history
    if history.count:
        yield Shown(
            "history",
            f"events {history.first} to {history.last}",
            f"what was said so far, {history.count} messages",
            history.tokens,
            round(100 * history.tokens / whole, 1),
            history.digest,
            "".join(spoken(message.author, message.text) for message in heard),
            tuple(Said(*message) for message in heard),
        )


def _doubts(opened: _Opened, called: ModelCalled | None) -> Iterator[str]:
    """Every way in which the record contradicts itself: digests are computed again."""
    recorded, sighted = opened.recorded, opened.sighted
    pieces = [
        piece(segment.kind, segment.origin, text, segment.reason)
        for segment, text in zip(sighted.segments, opened.texts, strict=True)
    ]
    yield from _piece_doubts(recorded, sighted.segments, pieces)
    yield from _frame_doubts(recorded, pieces, sighted.withheld, opened.heard)
    if called is not None and called.request != recorded.digest:
        yield f"the engine was asked with request {called.request}, not with this frame"


def _piece_doubts(
    recorded: FrameAssembled, segments: Sequence[Segment], pieces: Sequence[Piece]
) -> Iterator[str]:
    for number, (segment, again) in enumerate(zip(segments, pieces, strict=True), 1):
        where = f"segment {number} ({segment.origin})"
        if segment.digest != again.digest:
            yield f"{where} is recorded as {segment.digest}, and its text is {again.digest}"
        elif recorded.counter == COUNTER and segment.tokens != again.tokens:
            yield f"{where} is recorded with {segment.tokens} tokens, and has {again.tokens}"


def _frame_doubts(
    recorded: FrameAssembled,
    pieces: Sequence[Piece],
    withheld: Sequence[Withheld],
    heard: Sequence[Message],
) -> Iterator[str]:
    state = RunState("")
    for message in heard:
        hear(state, *message)
    again = frame(recorded.turn, recorded.agent, view(pieces, withheld), state.history, 0, {})
    pairs: list[tuple[str, Any, Any]] = [
        ("view", recorded.view, again.view),
        ("history", recorded.history.digest, again.history.digest),
        ("number of messages", recorded.history.count, again.history.count),
        ("digest", recorded.digest, again.digest),
    ]
    if recorded.counter == COUNTER:
        pairs.append(("number of tokens", recorded.tokens, again.tokens))
    for what, said, found in pairs:
        if said != found:
            yield f"the {what} is recorded as {said}, and is {found} when computed again"


def _call(own: Sequence[Event], called: ModelCalled | None) -> Call | None:
    if called is None:
        return None
    if failed := _one(own, ModelFailed):
        return Call(called.engine, "failed", error=f"{failed.error}: {failed.message}")
    if answered := _one(own, ModelAnswered):
        return Call(called.engine, "answered", answered.usage)
    return Call(called.engine, "open")


def _said(own: Sequence[Event]) -> Iterator[Spoken]:
    for event in own:
        if isinstance(event.data, AgentText):
            yield Spoken(event.seq, event.data.text, event.data.hidden)


def _changed(own: Sequence[Event]) -> Iterator[Became]:
    for event in own:
        if isinstance(event.data, ContextChanged):
            fact = event.data
            yield Became(event.seq, fact.name, fact.previous, fact.value, fact.writer)


def _onward(events: Sequence[Event], after: int, agent: str) -> Onward | None:
    for event in events:
        if event.seq <= after:
            continue
        if isinstance(event.data, RouteDecided) and event.data.source == agent:
            return Onward(event.seq, event.kind, event.data.target, event.data.reason)
        if event.kind in ENDS:
            return Onward(event.seq, event.kind, "", words(event))
    return None
