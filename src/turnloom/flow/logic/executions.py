"""Executions of steps in the log: the state that each was given, and its change."""

from collections.abc import Collection, Iterable
from typing import NamedTuple

from turnloom.flow.events import FlowStopped, StepCompleted, StepStarted
from turnloom.flow.logic.flowing import FlowForm
from turnloom.flow.logic.walking import state_of
from turnloom.kernel.values import Json
from turnloom.log.events import RunRetried
from turnloom.log.spec import Event


class StepExecution(NamedTuple):
    """The state that a step was given, and its change; None if it did not complete. `life` is the
    number of retries of the run before it began."""

    state: dict[str, Json]
    life: int
    update: dict[str, Json] | None = None


def find_executions(
    flow: FlowForm, events: Iterable[Event], numbers: Collection[int]
) -> dict[int, StepExecution]:
    """Executions by their numbers, in the events that count. A run does not keep past states: they
    are folded from its log when a flow is compensated."""
    progress, found, life = flow.begin(), dict[int, StepExecution](), 0
    for event in events:
        fact = event.data
        life += isinstance(fact, RunRetried)
        if isinstance(fact, FlowStopped):
            break
        if isinstance(fact, StepStarted) and fact.number in numbers:
            began = found[fact.number].life if fact.number in found else life
            found[fact.number] = StepExecution({**state_of(progress, fact.strand).state}, began)
        elif isinstance(fact, StepCompleted) and fact.number in found:
            found[fact.number] = found[fact.number]._replace(update=fact.update)
        fold = flow.folds.get(fact.__class__)
        if fold is not None:
            fold(progress, fact)
    return found
