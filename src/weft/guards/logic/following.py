"""How what happens in a run changes what its guards know."""

from collections.abc import Callable
from typing import Any

from weft.agents.events import TurnFinished
from weft.agents.spec import Failure, RunState
from weft.guards.events import BudgetExceeded, BudgetReserved, BudgetSpent, ScarcityChanged
from weft.guards.logic.budgeting import told
from weft.guards.spec import Guards, Watch
from weft.log.events import RunPaused, RunResumed
from weft.log.spec import Event

# What ends a run that has no budget for what it is to do, and one that goes round in circles.
EXCEEDED = "budget exceeded"
LOOPED = "loop detected"


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
    state.failure = state.failure or Failure(EXCEEDED, told(event.data))


def _on_scarcity(watch: Watch, state: RunState, event: Event) -> None:
    fact: ScarcityChanged = event.data
    watch.level = fact.level


def _on_turn_finished(watch: Watch, state: RunState, event: Event) -> None:
    """What a turn that was cut off had reserved may have been used."""
    fact: TurnFinished = event.data
    own, inside = f"t{fact.turn}", f"t{fact.turn}/"
    for call in [each for each in watch.held if each == own or each.startswith(inside)]:
        watch.spent += watch.held.pop(call)


_FOLDS: dict[type, Callable[[Watch, RunState, Any], None]] = {
    BudgetReserved: _on_reserved,
    BudgetSpent: _on_spent,
    BudgetExceeded: _on_exceeded,
    ScarcityChanged: _on_scarcity,
    TurnFinished: _on_turn_finished,
}
