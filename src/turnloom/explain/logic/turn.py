"""A turn from the log: the frame as sent, whether the record is sound, what came of it."""

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from turnloom.agents.events import ModelAnswered, TurnFinished, TurnStarted
from turnloom.agents.spec import Usage
from turnloom.assembly.events import HistorySummarised, RetrievalSearched
from turnloom.board.events import ArtifactConsumed
from turnloom.conversation.events import RouteDecided
from turnloom.errors import UsageError
from turnloom.explain.logic.artifacts import Artifacts, is_board
from turnloom.explain.logic.calls import Part, turn_of
from turnloom.explain.logic.flow_routes import after_turn, is_flow
from turnloom.explain.logic.opened import Opened, frame_doubts, open_frames, shown
from turnloom.explain.logic.parts import Asking, asking_doubts, askings
from turnloom.explain.logic.steps import calls, steps
from turnloom.explain.logic.words import words
from turnloom.explain.spec.board import Woken
from turnloom.explain.spec.turn import NO_FRAME, Framed, Onward, PartExplained, TurnExplained
from turnloom.kernel.values import nearest
from turnloom.log.events import ENDS
from turnloom.log.spec import Event
from turnloom.reaction.events import RetryAsked

# The part of a turn that is the turn itself, unless there are several tries.
WHOLE = Part(None, 0)


def explain_turn(events: Sequence[Event], number: int, agent: str | None = None) -> TurnExplained:
    """What a turn was shown, to the byte, and what it did; with `agent`, its turns are counted.

    Raises:
        UsageError: there is no such turn.
    """
    started, artifacts = _find(events, number, agent), Artifacts(events)
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


def _framed(opened: Opened) -> Framed:
    recorded, segments = opened.recorded, tuple(shown(opened))
    return Framed(
        opened.seq,
        recorded.as_in,
        segments,
        opened.sighted.withheld,
        recorded.tokens,
        recorded.counter,
        recorded.digest,
        "".join(segment.text for segment in segments),
        recorded.visibility,
    )


def _frame_of(part: Part, frames: Mapping[int, Opened]) -> Opened:
    """The frame of a part: its engine's own, or that which all engines have."""
    return frames.get(part.engine) or frames[0]


def _part(asking: Asking, frames: Mapping[int, Opened]) -> PartExplained:
    frame = _frame_of(asking.part, frames)
    own = None if frame.recorded.digest == frames[0].recorded.digest else _framed(frame)
    return PartExplained(asking.part.name, own, asking.exchanges)


def _doubts(frames: Mapping[int, Opened], asked: Sequence[Asking]) -> Iterator[str]:
    """Every way in which the record contradicts itself."""
    for opened in frames.values():
        yield from frame_doubts(opened)
    for each in asked:
        yield from asking_doubts(each, _frame_of(each.part, frames).recorded.digest)


def _woken(taken: Event, artifacts: Artifacts) -> Woken:
    fact: ArtifactConsumed = taken.data
    named = tuple(artifacts.named(id) for id in fact.artifacts)
    return Woken(taken.seq, fact.subscription, named, fact.retry_of)


def _onward(events: Sequence[Event], after: int, turn: TurnStarted) -> Onward | None:
    """Where the work went after a turn; on a board its artifacts say it, unless it failed."""
    later = [event for event in events if event.seq > after]
    if is_board(events):
        return next((_again(event, later) for event in later if _is_retry(event, turn)), None)
    if is_flow(events):
        found = after_turn(events, later, turn.turn)
        return found and Onward(found.seq, found.kind, "", words(found))
    for event in later:
        if isinstance(event.data, RouteDecided) and event.data.source == turn.agent:
            return Onward(event.seq, event.kind, event.data.target, event.data.reason)
        if event.kind in ENDS:
            return Onward(event.seq, event.kind, "", words(event))
    return None


def _is_retry(event: Event, turn: TurnStarted) -> bool:
    return isinstance(event.data, RetryAsked) and event.data.turn == turn.turn


def _again(asked: Event, later: Sequence[Event]) -> Onward:
    """The turn that was taken in place of one that failed, if it has been."""
    taken = (event.data for event in later if isinstance(event.data, ArtifactConsumed))
    turn = next((fact.turn for fact in taken if fact.retry_of == asked.data.turn), 0)
    return Onward(asked.seq, asked.kind, f"turn {turn}" if turn else "", words(asked))
