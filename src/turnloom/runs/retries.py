"""What a run that ended does again when it is retried."""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import NamedTuple

from turnloom.agents.events import (
    AnswerRefused,
    MessageSent,
    ModelAnswered,
    ModelFailed,
    QuestionAnswered,
    QuestionExpiredFact,
    TurnFinished,
    TurnStarted,
    UserText,
)
from turnloom.assembly.events import ContextGathered, ProviderFailed
from turnloom.board.events import ArtifactConsumed, ArtifactPublished, ArtifactRefused
from turnloom.guards.events import BudgetExceededFact
from turnloom.hooks.events import LifecycleToolCall, LifecycleToolError, LifecycleToolResult
from turnloom.log.spec import Event
from turnloom.runs.actions import Facts
from turnloom.variables.events import TimerExpired

# Errors of turns whose last answer was at fault: the model is asked again.
BAD_ANSWERS = ("TooManyMistakes", "TooManyRounds", "AnswerCutOff", "AnswerRefused")

# The actor of what is recorded with a retry.
RETRY = "retry"

# The error of a hook that a cancelled run gave up.
GIVEN_UP = "Cancelled"

_HOOKS = (LifecycleToolCall, LifecycleToolResult, LifecycleToolError)

# What came from outside, and counts whatever happened to the run.
_ARRIVED = (
    UserText,
    MessageSent,
    QuestionAnswered,
    AnswerRefused,
    ArtifactPublished,
    ArtifactRefused,
    TimerExpired,
)


class Redo(NamedTuple):
    """What a retry changes: the positions of the events that no longer count, and what is recorded
    after it: facts, and timers, in seconds."""

    voided: Set[int]
    facts: Facts = ()
    timers: Mapping[str, float] = {}


def redo_turns(
    events: Sequence[Event],
    stop: Event | None,
    since: int | str | None = None,
    at: int | None = None,
) -> Redo | None:
    """What a retry does again: everything since a turn, or after a position; or else the turns that
    failed or were cut off, without their completed calls, and what stopped the run at event
    `stop`."""
    if at is not None:
        return redo_after(events, at)
    if since is not None:
        before = turn_position(events, since) if isinstance(since, int) else None
        return None if before is None else redo_after(events, before)
    voided = {seq for fact in _failed(events) for seq in end_of_turn(events, fact)}
    if stop is not None:
        working = {f"t{number}" for number in _open_at(events, stop)}
        later = [event for event in events if event.seq >= stop.seq]
        voided |= {event.seq for event in later if not stands_after_stop(event, stop, working)}
        voided |= _settled(events, stop)
    if not voided:
        return None
    voided.add(events[-1].seq)  # the end of the run
    return Redo(with_derived(events, voided))


def none_misplaced(before: object, events: Sequence[Event]) -> Set[int]:
    """Everything that a run did has its place in another definition of its agents."""
    return frozenset()


def _failed(events: Sequence[Event]) -> list[TurnFinished]:
    """The turns that failed or were cut off, and were not tried again."""
    taken = (event.data for event in events if isinstance(event.data, ArtifactConsumed))
    retried = {fact.retry_of for fact in taken}
    ended = (event.data for event in events if isinstance(event.data, TurnFinished))
    return [fact for fact in ended if fact.status != "done" and fact.turn not in retried]


def redo_after(events: Sequence[Event], position: int) -> Redo:
    """Do everything again that came after a position. Hooks that ran after a failure did so for
    good."""
    has_failed = events[-1].kind != "run.finished"
    return Redo(
        {
            event.seq
            for event in events
            if event.seq > position and not (has_failed and is_after_chat(event))
        }
    )


def turn_position(events: Sequence[Event], turn: int) -> int | None:
    """The position before a turn began; None if the run has no such turn."""
    mark = f"t{turn}"
    if not any(isinstance(each.data, TurnStarted) and each.data.turn == turn for each in events):
        return None
    return next(each.seq for each in events if each.id.partition("/")[0] == mark) - 1


def continued_at(events: Sequence[Event]) -> int:
    """The position up to which everything counts when a message continues a run that ended: the end
    of its last turn or message, but nothing of a last turn that was not completed."""
    turns = [event.data.turn for event in events if isinstance(event.data, TurnStarted)]
    ended = (event.data for event in events if isinstance(event.data, TurnFinished))
    done = {fact.turn for fact in ended if fact.status == "done"}
    limit = events[-1].seq
    if turns and turns[-1] not in done:
        limit = turn_position(events, turns[-1]) or 0
    kept = [event.seq for event in events if event.seq <= limit and _is_of_talk(event)]
    return max(kept, default=1)


def _is_of_talk(event: Event) -> bool:
    """Whether an event is a message, or belongs to a turn, or to the start of the run."""
    id = event.id.partition(">")[0]
    head = id.partition("/")[0]
    is_turn = head.startswith("t") and head[1:].isdigit()
    return isinstance(event.data, UserText) or is_turn or head in ("start", "context", "opening")


def is_after_chat(event: Event) -> bool:
    """Whether an event is about a hook after the chat."""
    return isinstance(event.data, _HOOKS) and event.data.trigger == "after_chat"


def _open_at(events: Sequence[Event], stop: Event) -> Set[int]:
    """The turns that were open when the run was stopped."""
    found: set[int] = set()
    for event in events:
        if event.seq >= stop.seq:
            break
        if isinstance(event.data, TurnStarted):
            found.add(event.data.turn)
        elif isinstance(event.data, TurnFinished):
            found.discard(event.data.turn)
    return found


def stands_after_stop(event: Event, stop: Event, working: Set[str]) -> bool:
    """Whether an event after the stop of a run still counts."""
    fact = event.data
    if event is stop:
        return False
    if isinstance(fact, LifecycleToolError) and fact.error == GIVEN_UP:
        return False
    if isinstance(fact, QuestionExpiredFact):
        return event.actor == "clock"
    if isinstance(fact, (*_HOOKS, *_ARRIVED)):
        return True
    return event.id.partition("/")[0] in working


def end_of_turn(events: Sequence[Event], ended: TurnFinished) -> Iterator[int]:
    """The events of a turn that failed which do not count when it is entered again."""
    prefix = f"t{ended.turn}/"
    turn = [event for event in events if event.id.startswith(prefix)]
    gone = ("end", "spent", "scarcity")
    over = tuple(f"{prefix}{name}" for name in gone), (f"{prefix}loop.", f"{prefix}judged.")
    calls = {event.id.rpartition(".")[0] for event in turn if isinstance(event.data, ModelFailed)}
    calls |= _ungathered(turn)
    bad = _bad_answer(turn) if ended.error.partition(":")[0] in BAD_ANSWERS else None
    for event in turn:
        fact, key = event.data, event.id.rpartition(".")[0]
        if event.id in over[0] or event.id.startswith(over[1]):
            yield event.seq
        elif key in calls or event.id.removesuffix("/spent").removesuffix("/scarcity") in calls:
            yield event.seq
        elif isinstance(fact, BudgetExceededFact):
            yield event.seq
        elif bad is not None and event.seq >= bad.seq and not isinstance(fact, _HOOKS):
            yield event.seq


def _ungathered(turn: Sequence[Event]) -> Set[str]:
    """The keys of gatherings that gave no context."""
    failed = {each.id.rpartition(".")[0] for each in turn if isinstance(each.data, ProviderFailed)}
    given = {each.id.rpartition(".")[0] for each in turn if isinstance(each.data, ContextGathered)}
    return failed - given


def _bad_answer(turn: Sequence[Event]) -> Event | None:
    answers = [event for event in turn if isinstance(event.data, ModelAnswered)]
    return answers[-1] if answers else None


def _settled(events: Sequence[Event], stop: Event) -> Set[int]:
    """What was charged for a call outside turns that stopped the run."""
    key = stop.id.rpartition(".")[0]
    return {event.seq for event in events if event.id in (f"{key}/spent", f"{key}/scarcity")}


def with_derived(events: Iterable[Event], voided: Set[int]) -> Set[int]:
    """Positions, and those of what was derived from the events there."""
    ids = {event.id for event in events if event.seq in voided}
    derived = {
        event.seq for event in events if event.id.partition(">")[0] in ids and ">" in event.id
    }
    return voided | derived
