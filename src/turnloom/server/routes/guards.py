"""Guards: the budget of a run, and the beliefs about agents."""

from typing import Annotated

import msgspec
from fastapi import APIRouter, Query, Response

from turnloom.app.guards import AgentBelief, BudgetUse
from turnloom.server.context import View
from turnloom.server.replies import replies, reply
from turnloom.server.routes.runs import RunId
from turnloom.server.routes.workflows import Name

router = APIRouter(tags=["guards"])


class BeliefList(msgspec.Struct, frozen=True):
    """Beliefs about agents, sorted by name."""

    items: list[AgentBelief]


@router.get(
    "/runs/{run}/budget",
    operation_id="read_budget",
    summary="The budget of a run",
    **replies.of(BudgetUse),
)
async def read_budget(run: RunId, view: View) -> Response:
    """What a run has spent, and its limits."""
    return reply(await view.guards.budget(run))


@router.get(
    "/workflows/{name}/beliefs",
    operation_id="list_beliefs",
    summary="Beliefs about agents",
    **replies.of(BeliefList),
)
async def list_beliefs(
    name: Name,
    view: View,
    agent: Annotated[list[str], Query(min_length=1, max_length=100, description="An agent.")],
    category: Annotated[str, Query(max_length=1000, description="The kind of task.")] = "",
) -> Response:
    """What selections have learned about agents of a workflow."""
    return reply(BeliefList(await view.guards.beliefs(name, agent, category)))
