"""What can be asked of a run, what its declarations say, and what comes back."""

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from turnloom.conversation.spec import Conversation
from turnloom.explain.spec.flow import FlowRouteExplained
from turnloom.explain.spec.reaction import ConsumptionExplained, OfferExplained
from turnloom.explain.spec.route import RouteExplained
from turnloom.explain.spec.timeline import Timeline
from turnloom.explain.spec.turn import TurnExplained
from turnloom.explain.spec.variable import VariableExplained

Reaction = OfferExplained | ConsumptionExplained
Route = RouteExplained | FlowRouteExplained | Reaction
Explanation = TurnExplained | VariableExplained | Route | Timeline


class Asked(msgspec.Struct, frozen=True):
    """Which turn (perhaps counted for one agent), variable (perhaps as of an event) or route."""

    turn: int | None = None
    variable: str | None = None
    route: int | None = None
    agent: str | None = None
    at: int | None = None


class Declared(NamedTuple):
    """What a run began with, read from the first event of its log.

    `descriptions` say what variables are for, by name; `conversation` is what decided its routes
    and hooks, if it is one.
    """

    descriptions: Mapping[str, str] = {}
    conversation: Conversation | None = None


NOTHING_DECLARED = Declared()
