"""From a question to the explanation that answers it."""

from collections.abc import Sequence

from turnloom.errors import UsageError
from turnloom.explain.logic.artifacts import is_board
from turnloom.explain.logic.flow_routes import explain_flow_route, is_flow
from turnloom.explain.logic.reaction import explain_reaction
from turnloom.explain.logic.route import explain_route
from turnloom.explain.logic.timeline import timeline
from turnloom.explain.logic.turn import explain_turn
from turnloom.explain.logic.variable import explain_variable
from turnloom.explain.spec.asked import Asked, Declared, Explanation
from turnloom.log.spec import Event


def explain(events: Sequence[Event], asked: Asked, declared: Declared) -> Explanation:
    """The explanation of what is asked for; with nothing asked for, the timeline.

    Raises:
        UsageError: more than one thing is asked for, or the run does not have it.
    """
    _check(asked)
    if asked.turn is not None:
        return explain_turn(events, asked.turn, asked.agent)
    if asked.variable is not None:
        return explain_variable(events, asked.variable, asked.at, declared)
    if asked.route is not None and is_flow(events):
        return explain_flow_route(events, asked.route)
    if asked.route is not None and is_board(events):
        return explain_reaction(events, asked.route)
    if asked.route is not None:
        return explain_route(events, asked.route, declared)
    return timeline(events)


def _check(asked: Asked) -> None:
    if sum(each is not None for each in (asked.turn, asked.variable, asked.route)) > 1:
        raise UsageError("Ask for one thing at a time: a turn, a variable or a route.")
    if asked.agent is not None and asked.turn is None:
        raise UsageError("An agent goes with a turn: name the turn, counted for that agent.")
    if asked.at is not None and asked.variable is None:
        raise UsageError("`at` goes with a variable: name the variable.")
