"""What a user declares about guards, and what guards know of a run."""

from weft.guards.spec.budgets import Amounts, Price, RunBudget
from weft.guards.spec.guards import NO_GUARDS, Guards
from weft.guards.spec.loops import LoopDetection, Strategies, Strategy, Weights
from weft.guards.spec.watch import Entry, Escalation, Hint, Watch

__all__ = [
    "NO_GUARDS",
    "Amounts",
    "Entry",
    "Escalation",
    "Guards",
    "Hint",
    "LoopDetection",
    "Price",
    "RunBudget",
    "Strategies",
    "Strategy",
    "Watch",
    "Weights",
]
