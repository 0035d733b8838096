"""A turn from the log: the frame as sent, whether the record is sound, what came of it."""

from collections.abc import Iterator, Sequence

from weft.agents.events import (
    ModelAnswered,
    ModelCalled,
    ToolFailed,
    ToolReturned,
    TurnFinished,
    TurnStarted,
)
from weft.agents.logic.exchanges import exchange_of, request
from weft.agents.spec import Exchange, Usage
from weft.conversation.events import RouteDecided
from weft.errors import UsageError
from weft.explain.logic.calls import model_call_of, place_of, turn_of
from weft.explain.logic.opened import Opened, frame_doubts, open_frame, shown
from weft.explain.logic.steps import Call, calls, steps
from weft.explain.logic.words import words
from weft.explain.spec.text import counted
from weft.explain.spec.turn import Onward, TurnExplained
from weft.kernel.values import nearest
from weft.log.events import ENDS
from weft.log.spec import Event


def explain_turn(events: Sequence[Event], number: int, agent: str | None = None) -> TurnExplained:
    """What a turn was shown, to the byte, and what it did; with `agent`, its turns are counted.

    Raises:
        UsageError: there is no such turn.
    """
    started = _find(events, number, agent)
    own = _events_of(events, started)
    opened, found = open_frame(events, own), calls(own)
    recorded = opened.recorded if opened else None
    ended = next((event for event in own if isinstance(event.data, TurnFinished)), None)
    exchanges = tuple(_exchanges(found))
    doubts = tuple(_doubts(opened, found, exchanges)) if opened else ()
    segments = tuple(shown(opened)) if opened else ()
    return TurnExplained(
        run=started.run,
        turn=started.data.turn,
        agent=started.data.agent,
        status=ended.data.status if ended else "open",
        error=ended.data.error if ended else "",
        seq=opened.seq if opened else 0,
        as_in=recorded.as_in if recorded else 0,
        segments=segments,
        withheld=opened.sighted.withheld if opened else (),
        tokens=recorded.tokens if recorded else 0,
        counter=recorded.counter if recorded else "",
        digest=recorded.digest if recorded else "",
        verified=not doubts,
        doubts=doubts,
        prompt="".join(segment.text for segment in segments),
        exchanges=exchanges,
        steps=tuple(steps(found)),
        usage=_used(own),
        seconds=(ended.at - started.at).total_seconds() if ended else None,
        onward=_onward(events, own[-1].seq, started.data.agent) if ended else None,
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
    """What belongs to a turn: events under its key, and what else happened to the run meanwhile."""
    turn, own, going = started.data.turn, list[Event](), False
    for event in events:
        whose = turn_of(event)
        going = going or event.seq == started.seq
        if whose == turn or (going and whose is None):
            own.append(event)
        if isinstance(event.data, TurnFinished) and event.data.turn == turn:
            going = False
    return own


def _used(own: Sequence[Event]) -> Usage:
    answers = (event.data for event in own if isinstance(event.data, ModelAnswered))
    return sum((answer.usage for answer in answers), Usage())


def _exchanges(found: Sequence[Call]) -> Iterator[Exchange]:
    """What each model call but the last left for those behind it."""
    for call in _asked(found)[:-1]:
        answered = call.one(ModelAnswered)
        said = [event.data for event in call.events]
        tools = [each for each in found if model_call_of(each.key) == call.key]
        outcomes = [
            ended[1]
            for each in sorted(tools, key=lambda tool: place_of(tool.key))
            if (ended := each.one(ToolReturned, ToolFailed))
        ]
        if answered and (exchange := exchange_of(answered[1], said, outcomes)) is not None:
            yield exchange


def _asked(found: Sequence[Call]) -> list[Call]:
    """The model calls of a turn."""
    return [call for call in found if isinstance(call.events[0].data, ModelCalled)]


def _doubts(opened: Opened, found: Sequence[Call], exchanges: Sequence[Exchange]) -> Iterator[str]:
    """Every way in which the record contradicts itself."""
    yield from frame_doubts(opened)
    for number, call in enumerate(_asked(found)):
        said = call.events[0].data.request
        again = request(opened.recorded.digest, exchanges[:number])
        if said != again:
            given = f"the frame and {counted(number, 'exchange')}" if number else "this frame"
            yield f"model call {number + 1} was asked with request {said}, and {given} is {again}"


def _onward(events: Sequence[Event], after: int, agent: str) -> Onward | None:
    for event in events:
        if event.seq <= after:
            continue
        if isinstance(event.data, RouteDecided) and event.data.source == agent:
            return Onward(event.seq, event.kind, event.data.target, event.data.reason)
        if event.kind in ENDS:
            return Onward(event.seq, event.kind, "", words(event))
    return None
