"""What a user declares about guards, and what guards know of a run."""

from weft.guards.spec.beliefs import Belief, Observation, Pool
from weft.guards.spec.budgets import Amounts, Price, RunBudget
from weft.guards.spec.guards import NO_GUARDS, Guards
from weft.guards.spec.loops import LoopDetection, Strategies, Strategy, Weights
from weft.guards.spec.selection import GENERAL, Category, Selection
from weft.guards.spec.watch import Entry, Escalation, Hint, Watch

__all__ = [
    "GENERAL",
    "NO_GUARDS",
    "Amounts",
    "Belief",
    "Category",
    "Entry",
    "Escalation",
    "Guards",
    "Hint",
    "LoopDetection",
    "Observation",
    "Pool",
    "Price",
    "RunBudget",
    "Selection",
    "Strategies",
    "Strategy",
    "Watch",
    "Weights",
]
