"""What becomes of runs of flows."""

from contextlib import aclosing

from turnloom.agents.spec import RunState
from turnloom.errors import UsageError
from turnloom.flow.logic.flowing import Flowing
from turnloom.flow.spec.outcomes import Outcome
from turnloom.flow.spec.progress import Progress
from turnloom.log.events import RunPaused
from turnloom.runtime.logic import ENDED, evolve, fresh
from turnloom.runtime.service.runs import Runs


async def outcome(runs: Runs, run: str) -> Outcome:
    """What has become of a run of a flow, once it ends or waits for a person.

    Raises:
        UsageError: it is no run of a flow.
    """
    state, workflow = await _begun(runs, run)
    async with aclosing(runs.events(run)) as events:
        async for event in events:
            evolve(workflow, state, event)
            if isinstance(event.data, RunPaused) and await _is_asked(runs, state):
                break
    return _outcome(run, workflow, state)


async def _begun(runs: Runs, run: str) -> tuple[RunState, Flowing]:
    """The state of a run of a flow of which nothing is on record."""
    workflow = (await runs.definition(run)).workflow
    if not isinstance(workflow, Flowing):
        raise UsageError(f"Run {run!r} is no run of a flow, so it has no outcome.")
    return fresh(run, workflow), workflow


async def _is_asked(runs: Runs, state: RunState) -> bool:
    """Whether what a run waits for at this place of its log can still be answered."""
    asked = await runs.question(state.run)
    return asked is not None and state.question is not None and asked.id == state.question.id


def _outcome(run: str, workflow: Flowing, state: RunState) -> Outcome:
    progress = state.progress
    assert isinstance(progress, Progress)
    undoing = progress.undoing
    return Outcome(
        run,
        state.status if state.status in ENDED else "waiting",
        workflow.states.load(progress.strands[""].state),
        undoing.failure if undoing else None,
        state.question,
    )
