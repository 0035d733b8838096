"""Explanations of every kind, and what the declarations of a run say."""

from collections.abc import Mapping
from typing import NamedTuple

from turnloom.conversation.spec import Conversation
from turnloom.explain.spec.board import ConsumptionExplained, OfferExplained
from turnloom.explain.spec.route import FlowRouteExplained, RouteExplained
from turnloom.explain.spec.timeline import Timeline
from turnloom.explain.spec.turn import TurnExplained
from turnloom.explain.spec.variable import VariableExplained

Reaction = OfferExplained | ConsumptionExplained
RouteExplanation = RouteExplained | FlowRouteExplained | Reaction
Explanation = TurnExplained | VariableExplained | RouteExplanation | Timeline


class RunDeclarations(NamedTuple):
    """What a run began with, read from the first event of its log.

    `descriptions` say what variables are for, by name; `conversation` is what decided its routes
    and hooks, if it is one.
    """

    descriptions: Mapping[str, str] = {}
    conversation: Conversation | None = None


NOTHING_DECLARED = RunDeclarations()
