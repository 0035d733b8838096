"""The fold of a run's events into the state of its guards."""

from collections.abc import Callable, Iterable
from typing import Any

from turnloom.agents.events import QuestionAnswered, TurnFinished, TurnStarted, UserText
from turnloom.agents.spec import USER, Failure, RunState
from turnloom.guards.events import (
    BudgetExceededFact,
    BudgetReserved,
    BudgetSpent,
    LoopChecked,
    LoopDetectedFact,
    ScarcityChanged,
)
from turnloom.guards.logic import budgets as budgeting
from turnloom.guards.logic import loops as recovering
from turnloom.guards.logic.loops import CONTINUE, STOP
from turnloom.guards.spec import Escalation, Guards, Hint, Watch
from turnloom.log.events import RunLimited, RunPaused, RunResumed, RunRetried
from turnloom.log.logic import in_life
from turnloom.log.spec import Event

# The errors of a run that exceeds its budget, and of one in a loop.
EXCEEDED = "budget exceeded"
LOOPED = "loop detected"

# The number of turns kept for comparison: twice the longest window.
KEPT = 40


def new_watch(guards: Guards) -> Watch | None:
    """The initial state of guards; None without guards that have a state."""
    return None if guards.budget is None and guards.loop_detection is None else Watch()


def follow(state: RunState, event: Event) -> None:
    """Fold an event into the state of the guards, before any other fold."""
    watch: Watch = state.guards
    _pass_time(watch, event)
    fold = _FOLDS.get(event.data.__class__)
    if fold is not None:
        fold(watch, state, event)


def _pass_time(watch: Watch, event: Event) -> None:
    """Count the time since the last event, unless the run waited or was not driven."""
    if watch.at is not None and not isinstance(event.data, RunResumed | RunLimited | RunRetried):
        watch.seconds += max(0.0, (event.at - watch.at).total_seconds())
    watch.at = None if isinstance(event.data, RunPaused) else event.at


def _on_reserved(watch: Watch, state: RunState, event: Event) -> None:
    fact: BudgetReserved = event.data
    watch.held[fact.call] = fact.amounts


def _on_spent(watch: Watch, state: RunState, event: Event) -> None:
    fact: BudgetSpent = event.data
    watch.held.pop(fact.call, None)
    watch.spent += fact.amounts


def _on_exceeded(watch: Watch, state: RunState, event: Event) -> None:
    state.failure = state.failure or Failure(EXCEEDED, budgeting.exceeded_message(event.data))


def _on_scarcity(watch: Watch, state: RunState, event: Event) -> None:
    fact: ScarcityChanged = event.data
    watch.level = fact.level


def _on_turn_started(watch: Watch, state: RunState, event: Event) -> None:
    """Show the agent its pending hint, which changes its frame."""
    fact: TurnStarted = event.data
    watch.avoided = ()
    hint = watch.hints.pop(fact.agent, None)
    if hint is not None:
        watch.told[fact.turn] = hint
        state.revision += 1


def _on_turn_finished(watch: Watch, state: RunState, event: Event) -> None:
    """Count what a turn still has reserved as spent: it was cut off, and may have used it."""
    fact: TurnFinished = event.data
    own, inside = f"t{fact.turn}", f"t{fact.turn}/"
    for call in [each for each in watch.held if each == own or each.startswith(inside)]:
        watch.spent += watch.held.pop(call)
    if watch.told.pop(fact.turn, None) is not None:
        state.revision += 1


def _on_checked(watch: Watch, state: RunState, event: Event) -> None:
    fact: LoopChecked = event.data
    watch.entries = [*watch.entries, fact.entry][-KEPT:]


def _on_loop(watch: Watch, state: RunState, event: Event) -> None:
    """Reset the window, and apply the strategy."""
    fact: LoopDetectedFact = event.data
    watch.entries = []
    loop = recovering.name_of(fact.loop, fact.agents)
    watch.recoveries[loop] = fact.recoveries + 1
    match fact.strategy:
        case "stop":
            _stop(state, f"{recovering.describe_loop(fact)}.")
        case "escalate":
            watch.recoveries.pop(loop)
            prompt = (
                f"Loop detected: {recovering.describe_loop(fact)}. "
                f"Answer {CONTINUE}, {STOP}, or a hint for the agents."
            )
            watch.escalation = Escalation(
                in_life(f"{event.id}/ask", state.life), prompt, fact.agents
            )
        case "rotate_agent":
            watch.avoided = fact.agents
        case _:
            _hint(watch, fact.agents, fact.hint, recovering.describe_loop(fact))


def _on_answered(watch: Watch, state: RunState, event: Event) -> None:
    """Apply a person's answer about a loop."""
    fact: QuestionAnswered = event.data
    asked = watch.escalation
    if asked is None or asked.question != fact.question:
        return
    watch.escalation = None
    answer = str(fact.value).strip()
    if answer.lower() == STOP:
        _stop(state, f"{fact.by} stopped the run.")
    elif answer.lower() != CONTINUE:
        _hint(watch, asked.agents, answer, f"{fact.by} answered a question about a loop")


def _on_user_text(watch: Watch, state: RunState, event: Event) -> None:
    """Reset the window: a message of a person changes the situation."""
    fact: UserText = event.data
    if fact.author == USER:
        watch.entries = []


def _hint(watch: Watch, agents: Iterable[str], text: str, reason: str) -> None:
    for agent in agents:
        watch.hints[agent] = Hint(text, reason)


def _stop(state: RunState, why: str) -> None:
    state.failure = state.failure or Failure(LOOPED, why)


_FOLDS: dict[type, Callable[[Watch, RunState, Any], None]] = {
    BudgetReserved: _on_reserved,
    BudgetSpent: _on_spent,
    BudgetExceededFact: _on_exceeded,
    ScarcityChanged: _on_scarcity,
    TurnStarted: _on_turn_started,
    TurnFinished: _on_turn_finished,
    LoopChecked: _on_checked,
    LoopDetectedFact: _on_loop,
    QuestionAnswered: _on_answered,
    UserText: _on_user_text,
}
