"""Explanations of runs, and what they consist of."""

from turnloom.explain.spec.board import (
    Chose,
    Consulted,
    Gathered,
    Named,
    Offered,
    Published,
    Unprovided,
    Woken,
)
from turnloom.explain.spec.details import (
    Added,
    Became,
    Declined,
    Done,
    Gave,
    Noted,
    OwnTool,
    Questioned,
    Raised,
    Rejected,
    Spoken,
    Unset,
)
from turnloom.explain.spec.explanations import Explanation, RouteExplanation
from turnloom.explain.spec.flow import FlowRouteExplained
from turnloom.explain.spec.reaction import Arrived, ConsumptionExplained, OfferExplained
from turnloom.explain.spec.route import Otherwise, Picked, RouteExplained, Weighed
from turnloom.explain.spec.selection import Selected
from turnloom.explain.spec.steps import HookRan, ModelAsked, ToolUsed, Transferred
from turnloom.explain.spec.timeline import Row, Timeline
from turnloom.explain.spec.turn import Framed, Onward, PartExplained, Said, Shown, TurnExplained
from turnloom.explain.spec.variable import (
    Cause,
    Change,
    Gated,
    Judged,
    Omission,
    Refusal,
    Sight,
    VariableExplained,
)

__all__ = [
    "Added",
    "Arrived",
    "Became",
    "Cause",
    "Change",
    "Chose",
    "Consulted",
    "ConsumptionExplained",
    "Declined",
    "Done",
    "Explanation",
    "FlowRouteExplained",
    "Framed",
    "Gated",
    "Gathered",
    "Gave",
    "HookRan",
    "Judged",
    "ModelAsked",
    "Named",
    "Noted",
    "OfferExplained",
    "Offered",
    "Omission",
    "Onward",
    "Otherwise",
    "OwnTool",
    "Raised",
    "PartExplained",
    "Picked",
    "Published",
    "Questioned",
    "Refusal",
    "Rejected",
    "RouteExplained",
    "RouteExplanation",
    "Row",
    "Said",
    "Selected",
    "Shown",
    "Sight",
    "Spoken",
    "Timeline",
    "ToolUsed",
    "Transferred",
    "TurnExplained",
    "Unprovided",
    "Unset",
    "VariableExplained",
    "Weighed",
    "Woken",
]
