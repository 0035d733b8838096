"""Agents on a board: what they consume and publish, and their engines."""

from turnloom.reaction.spec.builder import AgentBuilder
from turnloom.reaction.spec.subscriptions import (
    Batch,
    BoardPlan,
    ContextFilter,
    Join,
    Member,
    Predicate,
    Product,
    Score,
    Subscription,
)

__all__ = [
    "AgentBuilder",
    "Batch",
    "ContextFilter",
    "Join",
    "Member",
    "BoardPlan",
    "Predicate",
    "Product",
    "Score",
    "Subscription",
]
