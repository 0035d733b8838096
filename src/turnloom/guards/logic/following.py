"""How what happens in a run changes what its guards know."""

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
from turnloom.log.events import RunPaused, RunResumed
from turnloom.log.spec import Event

# What ends a run that has no budget for what it is to do, and one that goes round in circles.
EXCEEDED = "budget exceeded"
LOOPED = "loop detected"

# How many turns are kept to be compared: twice the longest window.
KEPT = 40


def watching(guards: Guards) -> Watch | None:
    """What guards know of a run of which nothing is on record; nothing where there are none."""
    return None if guards.budget is None and guards.loop_detection is None else Watch()


def follow(state: RunState, event: Event) -> None:
    """Fold an event into what the guards know, before anything else does."""
    watch: Watch = state.guards
    _pass_time(watch, event)
    fold = _FOLDS.get(event.data.__class__)
    if fold is not None:
        fold(watch, state, event)


def _pass_time(watch: Watch, event: Event) -> None:
    """Count the time since the event before, unless the run waited or nobody drove it."""
    if watch.at is not None and not isinstance(event.data, RunResumed):
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
    state.failure = state.failure or Failure(EXCEEDED, budgeting.told(event.data))


def _on_scarcity(watch: Watch, state: RunState, event: Event) -> None:
    fact: ScarcityChanged = event.data
    watch.level = fact.level


def _on_turn_started(watch: Watch, state: RunState, event: Event) -> None:
    """An agent's next turn: it is told what it is to be told, and so is shown something else."""
    fact: TurnStarted = event.data
    watch.avoided = ()
    hint = watch.hints.pop(fact.agent, None)
    if hint is not None:
        watch.told[fact.turn] = hint
        state.revision += 1


def _on_turn_finished(watch: Watch, state: RunState, event: Event) -> None:
    """What a turn that was cut off had reserved may have been used."""
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
    """A loop is over as soon as something is done about it."""
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
                f"A loop: {recovering.describe_loop(fact)}. Answer {CONTINUE}, {STOP}, or a hint."
            )
            watch.escalation = Escalation(f"{event.id}/ask", prompt, fact.agents)
        case "rotate_agent":
            watch.avoided = fact.agents
        case _:
            _hint(watch, fact.agents, fact.hint, recovering.describe_loop(fact))


def _on_answered(watch: Watch, state: RunState, event: Event) -> None:
    """A person said what is to be done about a loop."""
    fact: QuestionAnswered = event.data
    asked = watch.escalation
    if asked is None or asked.question != fact.question:
        return
    watch.escalation = None
    answer = str(fact.value).strip()
    if answer.lower() == STOP:
        _stop(state, f"{fact.by} stopped it.")
    elif answer.lower() != CONTINUE:
        _hint(watch, asked.agents, answer, f"{fact.by} was asked about a loop")


def _on_user_text(watch: Watch, state: RunState, event: Event) -> None:
    """What a person says makes a new beginning."""
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
