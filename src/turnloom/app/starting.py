"""Starting runs."""

from os import PathLike
from typing import TypeVar

from pydantic import BaseModel

from turnloom.app.arguments import as_path
from turnloom.flow.logic.flows import Flow
from turnloom.flow.spec.progress import FlowFailed, Outcome
from turnloom.log.spec import RunKey
from turnloom.runtime.runs import FlowStart
from turnloom.wiring import Parts

S = TypeVar("S", bound=BaseModel)


async def start_run(
    parts: Parts,
    workflow: "str | PathLike[str] | Flow[S]",
    state: S | None,
    user: str,
    *,
    tenant: str,
    id: str | None = None,
) -> RunKey:
    """Start a run of the workflow in a folder, or of a flow with a state. With an `id`, a run that
    was started so before is not started again.

    Raises:
        Conflict: another run has this id.
        DefinitionError: the workflow does not pass its check; nothing was started.
        InvalidUpdate: it is not a state of the flow; nothing was started.
        MissingContext: a required variable has no value; nothing was started.
    """
    if isinstance(workflow, str | PathLike):
        path = as_path(workflow, "The place of the workflow")
        return await parts.runs.start(path, user=user, tenant=tenant, id=id)
    loaded = parts.flows.declare(workflow)
    parts.collections.open_named(each.context for each in loaded.staff.values())
    given = FlowStart(loaded, state if state is not None else workflow.state())
    return await parts.runs.start(given, user=user, tenant=tenant, id=id)


def succeeded(flow: str, outcome: Outcome[S]) -> Outcome[S]:
    """The outcome of a run of a flow that did not fail.

    Raises:
        FlowFailed: the run failed, or was cancelled.
    """
    if outcome.status in ("failed", "cancelled"):
        raise FlowFailed(_failure_message(flow, outcome), outcome)
    return outcome


def _failure_message(flow: str, outcome: Outcome[S]) -> str:
    failure = outcome.failure
    step = f"step {failure.step!r}" if failure and failure.step else ""
    where = failure and failure.what or step
    why = f": {failure.error}: {failure.message}" if failure else ""
    how = "failed" if outcome.status == "failed" else "was cancelled"
    return f"Run {outcome.run_id!r} of flow {flow!r} {how}{where and f' in {where}'}{why}"
