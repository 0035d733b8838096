"""What becomes of runs of flows."""

from contextlib import aclosing

from weft.agents.spec import Rest, RunState
from weft.errors import UsageError
from weft.flow.logic.flowing import Flowing
from weft.flow.spec.outcomes import Outcome
from weft.flow.spec.progress import Progress
from weft.runtime.logic import ENDED, evolve, fresh
from weft.runtime.service.flows import REST
from weft.runtime.service.runs import Runs
from weft.runtime.service.steps import asks


async def outcome(runs: Runs, run: str) -> Outcome:
    """What has become of a run of a flow, once it ends or waits for a person.

    Raises:
        UsageError: it is no run of a flow.
    """
    state, workflow = await _begun(runs, run)
    async with aclosing(runs.events(run)) as events:
        async for event in events:
            evolve(workflow, state, event)
            rests = event.id.startswith(REST) or _waits(workflow, state)
            if rests and await _is_asked(runs, state):
                break
    return _outcome(run, workflow, state)


async def _begun(runs: Runs, run: str) -> tuple[RunState, Flowing]:
    """The state of a run of a flow of which nothing is on record."""
    workflow = (await runs.definition(run)).workflow
    if not isinstance(workflow, Flowing):
        raise UsageError(f"Run {run!r} is no run of a flow, so it has no outcome.")
    return fresh(run, workflow), workflow


def _waits(workflow: Flowing, state: RunState) -> bool:
    """Whether a run does nothing but wait for a person: nothing is to be done, no other step is
    being taken, and no attempt is due."""
    asked, progress = state.question, state.progress
    assert isinstance(progress, Progress)
    if asked is None or workflow.decide(state) != Rest():
        return False
    askers = {step.strand for step in progress.steps.values() if asks(step, asked)}
    return not any(
        strand.status in ("busy", "waiting") and strand.asking is None and strand.id not in askers
        for strand in progress.strands.values()
    )


async def _is_asked(runs: Runs, state: RunState) -> bool:
    """Whether what a run waited for at some time is what it waits for now."""
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
