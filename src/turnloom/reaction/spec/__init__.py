"""What agents on a board consume and publish, and what makes them answer."""

from turnloom.reaction.spec.builder import AgentBuilder
from turnloom.reaction.spec.subscriptions import (
    Batch,
    ContextFilter,
    Join,
    Member,
    Plan,
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
    "Plan",
    "Predicate",
    "Product",
    "Score",
    "Subscription",
]
