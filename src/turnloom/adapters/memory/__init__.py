"""In-memory stores, for tests, experiments and runs that are never resumed."""

from turnloom.adapters.memory.log import MemoryBeliefs
from turnloom.adapters.memory.store import MemoryStore
from turnloom.adapters.memory.vectors import MemoryVectors

__all__ = ["MemoryBeliefs", "MemoryStore", "MemoryVectors"]
