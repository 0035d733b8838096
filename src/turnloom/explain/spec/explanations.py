"""The union of all explanations, and the declarations they need."""

from collections.abc import Mapping
from typing import NamedTuple

from turnloom.conversation.spec import Conversation
from turnloom.explain.spec.blame import BlameExplained
from turnloom.explain.spec.board import ConsumptionExplained, OfferExplained
from turnloom.explain.spec.diff import TurnDiff
from turnloom.explain.spec.route import FlowRouteExplained, RouteExplained
from turnloom.explain.spec.timeline import Timeline
from turnloom.explain.spec.turn import TurnExplained
from turnloom.explain.spec.variable import VariableExplained
from turnloom.explain.spec.what_if import WhatIf
from turnloom.variables.spec import VariableDefinition

Reaction = OfferExplained | ConsumptionExplained
RouteExplanation = RouteExplained | FlowRouteExplained | Reaction
Explanation = (
    TurnExplained
    | VariableExplained
    | RouteExplanation
    | Timeline
    | TurnDiff
    | BlameExplained
    | WhatIf
)


class RunDeclarations(NamedTuple):
    """The declarations of a run, read from the first event of its log.

    `descriptions` maps variables to their descriptions, and `types` to their types and enums;
    `conversation` is None for other forms, and `plan` is the text of the plan of a board or a flow,
    if it was kept.
    """

    descriptions: Mapping[str, str] = {}
    conversation: Conversation | None = None
    types: Mapping[str, VariableDefinition] = {}
    plan: str = ""


NOTHING_DECLARED = RunDeclarations()
