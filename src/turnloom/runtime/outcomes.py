"""Outcomes of flow runs, and results of `board.invoke`."""

from collections.abc import Mapping
from contextlib import aclosing
from typing import Any, cast

from turnloom.agents.events import TurnFinished
from turnloom.agents.spec import RunState
from turnloom.board.events import ArtifactMade, ArtifactPublished
from turnloom.board.spec import Artifact
from turnloom.errors import InvalidUpdate, PlanChanged, ReactionFailed, UsageError
from turnloom.flow.events import StepCompensated
from turnloom.flow.logic.flowing import FlowForm
from turnloom.flow.logic.migrating import migrate
from turnloom.flow.logic.states import is_current
from turnloom.flow.spec.progress import Outcome, OutcomeStatus, Progress
from turnloom.kernel.values import Json
from turnloom.log.events import ENDS, RunPaused, RunRetried
from turnloom.log.logic import standing
from turnloom.log.spec import Event, RunKey
from turnloom.runtime.logic import ENDED, evolve, folded, fresh
from turnloom.runtime.runs import Runs


async def outcome(runs: Runs, run: RunKey) -> Outcome[Any]:
    """The outcome of a run of a flow, once it ends or waits for a person.

    Raises:
        UsageError: it is not a run of a flow.
    """
    form = (await runs.definition(run)).workflow
    if not isinstance(form, FlowForm):
        raise UsageError(f"Run {run.id!r} is not a run of a flow, so it has no outcome.")
    while (state := await runs.rested(run)) is not None:
        if state.status in ENDED or await _is_asked(runs, run, state):
            return _outcome(run.id, form, state)
    return _outcome(run.id, form, await _followed(runs, run, form))


async def not_undone(runs: Runs, run: RunKey) -> list[StepCompensated]:
    """Steps that could not be compensated when a run of a flow was stopped, once it ended.

    Raises:
        UnknownRun: there is no such run.
    """
    async with aclosing(runs.events(run)) as events:
        stored = [event async for event in events]
    facts = [event.data for event in standing(stored)]
    return [fact for fact in facts if isinstance(fact, StepCompensated) and fact.error]


async def _followed(runs: Runs, run: RunKey, form: FlowForm) -> RunState:
    """The state of a run that is not driven here, once it ends or waits for a person."""
    state, stored = fresh(run, form), list[Event]()
    async with aclosing(runs.events(run)) as events:
        async for event in events:
            stored.append(event)
            if isinstance(event.data, RunRetried):
                state = folded(form, run, stored)
            else:
                evolve(form, state, *standing([event], state.life))
            if isinstance(event.data, RunPaused) and await _is_asked(runs, run, state):
                break
    return state


async def _is_asked(runs: Runs, run: RunKey, state: RunState) -> bool:
    """Whether a run in this state still waits, and can be answered."""
    if not state.questions or await runs.position(run) != state.position:
        return False
    return bool(await runs.questions.open(run))


def _state(form: FlowForm, written: Mapping[str, Json]) -> Any:
    """The state of a run, which may have ended with an earlier model of it.

    Raises:
        PlanChanged: the state does not fit the present model.
    """
    if is_current(form.states, written):
        return form.states.load(written)
    try:
        return form.states.load(migrate(form.plan, form.states, written))
    except InvalidUpdate as error:
        raise PlanChanged(f"The state of flow {form.name!r} has changed. {error}") from error


def _outcome(run: str, form: FlowForm, state: RunState) -> Outcome[Any]:
    progress = state.progress
    assert isinstance(progress, Progress)
    undoing = progress.undoing
    return Outcome(
        run,
        cast(OutcomeStatus, state.status) if state.status in ENDED else "waiting",
        _state(form, progress.strands[""].state),
        undoing.failure if undoing else None,
        questions=tuple(state.questions.values()),
    )


async def invoked(runs: Runs, run: RunKey) -> list[Artifact]:
    """The artifacts of the first turn of a run, once it is over.

    Raises:
        ReactionFailed: it could not be done.
    """
    made: list[Artifact] = []
    async with aclosing(runs.events(run)) as events:
        async for event in events:
            fact = event.data
            if isinstance(fact, ArtifactMade | ArtifactPublished) and fact.turn == 1:
                made.append(fact.artifact)
            elif isinstance(fact, TurnFinished) and fact.turn == 1:
                if fact.status == "done":
                    return made
                raise ReactionFailed(run.id, 1, fact.agent, fact.error or fact.status)
            elif event.kind in ENDS:
                raise ReactionFailed(run.id, 1, "", f"the run ended: {event.kind}")
    raise ReactionFailed(run.id, 1, "", "the run ended")
