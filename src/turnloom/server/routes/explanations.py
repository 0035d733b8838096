"""Explanations of runs: the JSON of `turnloom explain … --json`."""

from typing import Annotated

import msgspec
from fastapi import APIRouter, Path, Query, Response

from turnloom.explain.spec.blame import BlameExplained
from turnloom.explain.spec.cost import Cost
from turnloom.explain.spec.diff import TurnDiff
from turnloom.explain.spec.explanations import RouteExplanation
from turnloom.explain.spec.state import StateExplained
from turnloom.explain.spec.timeline import Timeline
from turnloom.explain.spec.turn import TurnExplained
from turnloom.explain.spec.variable import VariableExplained
from turnloom.explain.spec.what_if import WhatIf
from turnloom.server.context import View
from turnloom.server.replies import replies, reply
from turnloom.server.routes.runs import RunId

router = APIRouter(tags=["explain"])

MOST = 2**53
Turn = Annotated[int, Path(ge=1, le=MOST, description="The number of a turn.")]
Agent = Annotated[str | None, Query(description="Count the turns of this agent only.")]
At = Annotated[int | None, Query(ge=1, le=MOST, description="As of this event, not the last.")]

# The page has its own styles and scripts, and nothing of other places.
_PAGE_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'none'; sandbox allow-scripts"
)


@router.get(
    "/runs/{run}/timeline",
    operation_id="explain_timeline",
    summary="The timeline of a run",
    **replies.of(Timeline),
)
async def explain_timeline(run: RunId, view: View) -> Response:
    """A row per turn, call, question or route."""
    return reply(await view.explain.timeline(run))


class RunCost(msgspec.Struct, frozen=True):
    """What the model calls of a run or a turn cost so far; null if there were none."""

    cost: Cost | None


@router.get(
    "/runs/{run}/cost",
    operation_id="explain_cost",
    summary="The cost of a run",
    **replies.of(RunCost),
)
async def explain_cost(
    run: RunId,
    view: View,
    turn: Annotated[int | None, Query(ge=1, le=MOST, description="Of this turn only.")] = None,
) -> Response:
    """The cost of its model calls, by the prices of this server."""
    return reply(RunCost(await view.explain.cost(run, turn=turn)))


@router.get(
    "/runs/{run}/turns/{turn}",
    operation_id="explain_turn",
    summary="What a turn was shown",
    **replies.of(TurnExplained),
)
async def explain_turn(run: RunId, turn: Turn, view: View, agent: Agent = None) -> Response:
    """The exact frame of a turn, what was withheld and why, and what the turn did."""
    return reply(await view.explain.turn(run, turn, agent=agent))


@router.get(
    "/runs/{run}/turns/{turn}/diff",
    operation_id="explain_diff",
    summary="What changed since another turn",
    **replies.of(TurnDiff),
)
async def explain_diff(
    run: RunId,
    turn: Turn,
    view: View,
    against: Annotated[
        int | None,
        Query(ge=1, le=MOST, description="The other turn; by default the agent's previous one."),
    ] = None,
    other_run: Annotated[str | None, Query(description="The run of the other turn.")] = None,
    agent: Agent = None,
) -> Response:
    """The differences between the frames of two turns, each with its cause."""
    return reply(await view.explain.diff(run, turn, against, other_run=other_run, agent=agent))


@router.get(
    "/runs/{run}/turns/{turn}/what-if",
    operation_id="explain_what_if",
    summary="A turn with another threshold of a search",
    **replies.of(WhatIf),
)
async def explain_what_if(
    run: RunId,
    turn: Turn,
    view: View,
    search: Annotated[int, Query(ge=1, le=MOST, description="The event of the search.")],
    min_relevance: Annotated[float, Query(ge=0, le=1, description="The other threshold.")],
) -> Response:
    """Backtest a turn: what it would have been shown, and how sure that is. No model or tool is
    called, and nothing is stored."""
    return reply(await view.explain.what_if(run, turn, search, min_relevance))


@router.get(
    "/runs/{run}/variables/{name}",
    operation_id="explain_variable",
    summary="Why a variable has its value",
    **replies.of(VariableExplained),
)
async def explain_variable(
    run: RunId,
    name: Annotated[str, Path(description="The name of a variable.", max_length=1000)],
    view: View,
    at: At = None,
) -> Response:
    """The value of a variable, its changes, and the frames that showed it."""
    return reply(await view.explain.variable(run, name, at=at))


@router.get(
    "/runs/{run}/routes/{seq}",
    operation_id="explain_route",
    summary="Why the work went where it went",
    **replies.of(RouteExplanation),
)
async def explain_route(
    run: RunId,
    seq: Annotated[int, Path(ge=1, le=MOST, description="The event that decides the route.")],
    view: View,
) -> Response:
    """The rules that were considered, what each needed, and which one fired."""
    return reply(await view.explain.route(run, seq))


@router.get(
    "/runs/{run}/blame",
    operation_id="explain_blame",
    summary="Where a text comes from",
    **replies.of(BlameExplained),
)
async def explain_blame(
    run: RunId,
    view: View,
    text: Annotated[str, Query(max_length=10_000, description="At least 8 characters.")],
) -> Response:
    """The frames and events that have a text, and where it entered."""
    return reply(await view.explain.blame(run, text))


@router.get(
    "/runs/{run}/state",
    operation_id="read_state",
    summary="The state of a run at an event",
    **replies.of(StateExplained),
)
async def read_state(
    run: RunId,
    view: View,
    at: At = None,
    agent: Annotated[
        str | None, Query(description="With the artifacts that this agent may see.")
    ] = None,
) -> Response:
    """Variables, questions, open work, position, budget and timers, at the end or at any event."""
    return reply(await view.history.state(run, at=at, agent=agent))


@router.get(
    "/runs/{run}/page",
    operation_id="export_page",
    summary="All explanations of a run as one HTML page",
    **replies.raw({"content": {"text/html": {"schema": {"type": "string"}}}}),
)
async def export_page(run: RunId, view: View) -> Response:
    """A page that needs nothing else."""
    page = await view.explain.page(run)
    headers = {"Content-Security-Policy": _PAGE_POLICY}
    return Response(page, media_type="text/html", headers=headers)
