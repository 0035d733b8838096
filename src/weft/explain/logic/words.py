"""Events in a few words, and the chain of events that led to one."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from weft.agents import events as agents
from weft.assembly.events import FrameAssembled
from weft.conversation.events import RouteDecided
from weft.explain.spec.text import one_line
from weft.explain.spec.variable import Cause
from weft.kernel.values import preview
from weft.log import events as runs
from weft.log.spec import Event, Fact
from weft.variables.events import ContextChanged

# A chain of causes ends with what came from outside.
OUTSIDE = frozenset({runs.RunStarted.kind, runs.CancelRequested.kind, agents.QuestionAnswered.kind})

# A longer chain explains no more: each link further back is an earlier turn of its own.
CHAIN = 100

_BY_FACT: dict[type[Fact], Callable[[Any], str]] = {
    runs.RunStarted: lambda fact: f"run of {fact.workflow} began",
    runs.RunFinished: lambda fact: fact.reason,
    runs.RunFailed: lambda fact: f"{fact.error}: {fact.message}",
    runs.RunCancelled: lambda fact: f"by {fact.by}" + (f": {fact.reason}" if fact.reason else ""),
    runs.CancelRequested: lambda fact: f"{fact.by} wanted the end",
    FrameAssembled: lambda fact: f"frame of {fact.agent}, {fact.tokens} tokens",
    agents.TurnStarted: lambda fact: f"turn {fact.turn} of {fact.agent} began",
    agents.TurnFinished: lambda fact: f"turn {fact.turn} of {fact.agent} ended",
    agents.ModelCalled: lambda fact: f"{fact.engine} was asked",
    agents.ModelAnswered: lambda fact: "the engine answered",
    agents.ModelFailed: lambda fact: f"the engine failed: {one_line(fact.message)}",
    agents.AgentText: lambda fact: f"{fact.agent} said {preview(fact.text)}",
    agents.UserText: lambda fact: f"{fact.author} said {preview(fact.text)}",
    agents.QuestionAsked: lambda fact: f"question to {fact.to}",
    agents.QuestionAnswered: lambda fact: f"{fact.by} answered {preview(fact.value)}",
    RouteDecided: lambda fact: f"{fact.source or 'start'} → {fact.target} ({fact.reason})",
    ContextChanged: lambda fact: f"{fact.name} became {preview(fact.value)}",
}
_WORDS = {fact.kind: say for fact, say in _BY_FACT.items()}


def words(event: Event) -> str:
    """The event in a few words."""
    say = _WORDS.get(event.kind)
    return say(event.data) if say is not None else event.kind


def causes(event: Event, by_seq: Mapping[int, Event]) -> tuple[Cause, ...]:
    """What led to an event, nearest first, back to what came from outside or to `CHAIN` links."""
    found: list[Cause] = []
    seq = event.cause
    while seq is not None and seq in by_seq and seq < event.seq and len(found) < CHAIN:
        event = by_seq[seq]
        found.append(Cause(event.seq, event.kind, event.actor, words(event)))
        seq = None if event.kind in OUTSIDE else event.cause
    return tuple(found)


def numbered(events: Iterable[Event]) -> dict[int, Event]:
    """The events by their place in the run."""
    return {event.seq: event for event in events}
