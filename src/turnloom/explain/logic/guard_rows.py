"""The rows of a timeline that guards add, and what a run used of its budget."""

from collections.abc import Iterable

from turnloom.explain.logic.rows import Handlers, Rows
from turnloom.explain.logic.words import amounts, words
from turnloom.guards import events as guards
from turnloom.guards.logic.recovering import told
from turnloom.guards.spec import Amounts
from turnloom.log.spec import Event


def _on_exceeded(rows: Rows, event: Event, fact: guards.BudgetExceeded) -> None:
    rows.add(event.id, event, "budget", "exceeded", note=words(event))


def _on_scarcity(rows: Rows, event: Event, fact: guards.ScarcityChanged) -> None:
    note = f"{fact.share:.0%} of {fact.resource} left"
    rows.add(event.id, event, "budget", fact.level, note=note)


def _on_window(rows: Rows, event: Event, fact: guards.WindowNeared) -> None:
    rows.add(event.id, event, "window", fact.agent, note=words(event))


def _on_loop(rows: Rows, event: Event, fact: guards.LoopDetected) -> None:
    instead = f" in place of {fact.instead_of}" if fact.instead_of else ""
    rows.add(event.id, event, "loop", fact.strategy, note=f"{told(fact)}{instead}")


def spent(events: Iterable[Event]) -> str:
    """What a run used of its budget, in words; nothing if it has none."""
    used = [event.data.amounts for event in events if isinstance(event.data, guards.BudgetSpent)]
    return amounts(sum(used, Amounts())) if used else ""


GUARD_HANDLERS: Handlers = {
    guards.BudgetExceeded.kind: _on_exceeded,
    guards.ScarcityChanged.kind: _on_scarcity,
    guards.WindowNeared.kind: _on_window,
    guards.LoopDetected.kind: _on_loop,
}
