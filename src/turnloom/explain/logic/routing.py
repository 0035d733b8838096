"""Routes of every form."""

from collections.abc import Sequence

from turnloom.explain.logic.artifacts import is_board
from turnloom.explain.logic.flow_routes import explain_flow_route, is_flow
from turnloom.explain.logic.reaction import explain_reaction
from turnloom.explain.logic.route import explain_route
from turnloom.explain.spec.explanations import Declared, RouteExplanation
from turnloom.log.spec import Event


def explain_any_route(events: Sequence[Event], seq: int, declared: Declared) -> RouteExplanation:
    """Why the work went where it went, by the event that says so.

    Raises:
        UsageError: the event decides no route.
    """
    if is_flow(events):
        return explain_flow_route(events, seq)
    if is_board(events):
        return explain_reaction(events, seq)
    return explain_route(events, seq, declared)
