"""Workflows that the server has: list, show, check, draw."""

from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Path, Response

from turnloom.app.workflows import ServedWorkflow, ShownWorkflow
from turnloom.errors import UnknownWorkflow
from turnloom.server.context import State, View
from turnloom.server.problems import ProblemEntry, faults_of
from turnloom.server.replies import replies, reply

router = APIRouter(tags=["workflows"])

Name = Annotated[str, Path(description="The name of a workflow.", max_length=1000)]


class WorkflowList(msgspec.Struct, frozen=True):
    """Workflows, sorted by name."""

    items: list[ServedWorkflow]


class CheckResult(msgspec.Struct, frozen=True):
    """Whether a workflow passes its check, and all of its problems."""

    passes: bool
    problems: list[ProblemEntry]


class InputSchema(msgspec.Struct, frozen=True):
    """The JSON Schema of what a run of a workflow begins with, if it begins with something."""

    input: Any = None


class Graph(msgspec.Struct, frozen=True):
    """A picture of a workflow, in Mermaid's language."""

    mermaid: str


@router.get(
    "/workflows",
    operation_id="list_workflows",
    summary="List workflows",
    **replies.of(WorkflowList),
)
async def list_workflows(view: View, state: State) -> Response:
    """The workflows that can be started, and the boards that can be published to."""
    return reply(WorkflowList(state.loom.workflows.served(view.principal.app_id)))


@router.get(
    "/workflows/{name}",
    operation_id="show_workflow",
    summary="Show a workflow",
    **replies.of(ShownWorkflow),
)
async def show_workflow(name: Name, view: View, state: State) -> Response:
    """A workflow as it is declared: its files, and how its agents get their context."""
    view.principal.need("explain")
    return reply(await state.loom.workflows.show(name, app_id=view.principal.app_id))


@router.get(
    "/workflows/{name}/schema",
    operation_id="read_workflow_schema",
    summary="The input of a workflow",
    **replies.of(InputSchema),
)
async def read_workflow_schema(name: Name, view: View, state: State) -> Response:
    """The JSON Schema of `input` of a start; null if a run of it begins without one."""
    view.principal.need("runs:read")
    flow = state.loom.workflows.flow(name)
    if flow is not None:
        return reply(InputSchema(flow.state.model_json_schema()))
    served = state.loom.workflows.served(view.principal.app_id)
    if name not in {each.name for each in served}:
        raise UnknownWorkflow(name)
    return reply(InputSchema())


@router.get(
    "/workflows/{name}/check",
    operation_id="check_workflow",
    summary="Check a workflow",
    **replies.of(CheckResult),
)
async def check_workflow(name: Name, view: View, state: State) -> Response:
    """All problems of a workflow, at their lines."""
    view.principal.need("explain")
    found = await state.loom.workflows.check(name, app_id=view.principal.app_id)
    passes = all(each.severity != "error" for each in found)
    return reply(CheckResult(passes, faults_of(found)))


@router.get(
    "/workflows/{name}/graph",
    operation_id="draw_workflow",
    summary="Draw a workflow",
    **replies.of(Graph),
)
async def draw_workflow(name: Name, view: View, state: State) -> Response:
    """A flowchart of a workflow."""
    view.principal.need("explain")
    drawn = await state.loom.workflows.graph(name, app_id=view.principal.app_id)
    return reply(Graph(drawn))
