"""Chains of causes between the events of a run."""

from collections.abc import Sequence

from turnloom.agents.events import QuestionAnswered
from turnloom.board.events import ArtifactPublished
from turnloom.explain.logic.artifacts import ArtifactHistory
from turnloom.explain.logic.describe import describe
from turnloom.explain.logic.frames import call_of, model_call_of
from turnloom.explain.spec.variable import Cause
from turnloom.log.events import CancelRequested, RunPaused, RunStarted
from turnloom.log.spec import Event
from turnloom.reaction.events import ArtifactReceived, ArtifactsGiven, BatchClosed, RetryAsked
from turnloom.variables.events import ContextChanged, ContextMissed, ContextRefused

# These facts come from outside and end a chain of causes.
OUTSIDE = (
    RunStarted,
    CancelRequested,
    QuestionAnswered,
    ArtifactReceived,
    ArtifactsGiven,
    BatchClosed,
    RetryAsked,
)

# Side facts of a call: later facts of the call do not follow from them.
SIDE_FACTS = (RunPaused, ContextChanged, ContextRefused, ContextMissed)

# Longer chains explain nothing more: further links belong to earlier turns.
CHAIN = 100


class Causes:
    """The causes of each event of a run.

    The log names the previous event as the cause. Concurrent calls interleave their events, so an
    event of a call follows from the previous event of the same call. A value derived by a trigger
    follows from the event that the log names. On a board, a consumption follows from an offer, and
    an offer from a publication.
    """

    def __init__(self, events: Sequence[Event]) -> None:
        self._events = {event.seq: event for event in events}
        self._led: dict[int, int | None] = {}
        # Chains share their links: a variable that changes in each turn has long ones.
        self._links: dict[int, Cause] = {}
        latest: dict[str, int] = {}
        artifacts = ArtifactHistory(events)
        for event in events:
            key = call_of(event)
            derived = event.actor.startswith("trigger:")
            before = latest.get(key) or latest.get(model_call_of(key)) if key else None
            leading = artifacts.leading(event)
            before = leading.seq if leading else before
            self._led[event.seq] = event.cause if derived else before or event.cause
            if key and not isinstance(event.data, SIDE_FACTS):
                latest[key] = event.seq

    def of(self, event: Event) -> tuple[Cause, ...]:
        """The causes of an event, nearest first, back to an outside event or `CHAIN` links."""
        found: list[Cause] = []
        seq = self._led[event.seq]
        while seq is not None and seq in self._events and seq < event.seq and len(found) < CHAIN:
            event = self._events[seq]
            found.append(self._link(event))
            seq = None if is_outside(event) else self._led[event.seq]
        return tuple(found)

    def nearest(self, event: Event) -> Event | None:
        """The event that an event follows from."""
        return self._events.get(self._led[event.seq] or 0)

    def _link(self, event: Event) -> Cause:
        if (link := self._links.get(event.seq)) is None:
            link = Cause(event.seq, event.kind, event.actor, describe(event.data))
            self._links[event.seq] = link
        return link


def is_outside(event: Event) -> bool:
    """Whether nothing in the run caused the event; an answer to a tool follows from its call."""
    if isinstance(event.data, ArtifactPublished):
        return not event.data.turn
    return isinstance(event.data, OUTSIDE) and not call_of(event)
