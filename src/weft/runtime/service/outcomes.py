"""What becomes of runs of flows."""

from contextlib import aclosing

from weft.agents.spec import RunState
from weft.errors import UsageError
from weft.flow.logic.flowing import Flowing
from weft.flow.spec.outcomes import Outcome
from weft.flow.spec.progress import Progress
from weft.log.events import RunPaused
from weft.runtime.logic import ENDED, evolve, fresh
from weft.runtime.service.runs import Runs


async def outcome(runs: Runs, run: str) -> Outcome:
    """What has become of a run of a flow, once it ends or waits for a person.

    Raises:
        UsageError: it is no run of a flow.
    """
    state: RunState | None = None
    known = await runs.position(run)
    async with aclosing(runs.events(run)) as events:
        async for event in events:
            if state is None:
                loaded = await runs.restore(event.data)
                workflow = loaded.workflow
                if not isinstance(workflow, Flowing):
                    raise UsageError(f"Run {run!r} is no run of a flow, so it has no outcome.")
                state = fresh(run, workflow)
            evolve(workflow, state, event)
            is_paused = event.seq >= known and isinstance(event.data, RunPaused)
            if is_paused and state.question is not None:
                break
    assert state is not None
    return _outcome(run, workflow, state)


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
