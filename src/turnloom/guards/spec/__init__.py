"""What a user declares about guards, and what guards know of a run."""

from turnloom.guards.spec.beliefs import Belief, Observation, Pool
from turnloom.guards.spec.budgets import Amounts, Price, RunBudget
from turnloom.guards.spec.guards import NO_GUARDS, Guards
from turnloom.guards.spec.loops import LoopDetection, Strategies, Strategy, Weights
from turnloom.guards.spec.selection import GENERAL, Category, Selection
from turnloom.guards.spec.watch import Entry, Escalation, Hint, Watch

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
