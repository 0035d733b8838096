"""The chain of events that led to one."""

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

# A chain of causes ends with what came from outside.
OUTSIDE = (
    RunStarted,
    CancelRequested,
    QuestionAnswered,
    ArtifactReceived,
    ArtifactsGiven,
    BatchClosed,
    RetryAsked,
)

# What a call leaves beside its way: nothing else that it does follows from these.
BESIDE = (RunPaused, ContextChanged, ContextRefused, ContextMissed)

# A longer chain explains no more: each link further back is an earlier turn of its own.
CHAIN = 100


class Causes:
    """What led to each event of a run.

    The log says what came before an event. Calls that go on side by side write between each
    other, so what a call left follows from what the same call left before; and what a trigger
    derived follows from exactly the event that the log names. On a board, what is taken follows
    from what was offered, and that from what was published.
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
            if key and not isinstance(event.data, BESIDE):
                latest[key] = event.seq

    def of(self, event: Event) -> tuple[Cause, ...]:
        """What led to an event, nearest first, back to what came from outside or `CHAIN` links."""
        found: list[Cause] = []
        seq = self._led[event.seq]
        while seq is not None and seq in self._events and seq < event.seq and len(found) < CHAIN:
            event = self._events[seq]
            found.append(self._link(event))
            seq = None if _is_outside(event) else self._led[event.seq]
        return tuple(found)

    def _link(self, event: Event) -> Cause:
        if (link := self._links.get(event.seq)) is None:
            link = Cause(event.seq, event.kind, event.actor, describe(event.data))
            self._links[event.seq] = link
        return link


def _is_outside(event: Event) -> bool:
    """Whether nothing in the run led to an event; an answer to a tool follows from its call."""
    if isinstance(event.data, ArtifactPublished):
        return not event.data.turn
    return isinstance(event.data, OUTSIDE) and not call_of(event)
