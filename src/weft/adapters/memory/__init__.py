"""Stores that live and die with their process: for tests, trials and runs that nobody resumes."""

from weft.adapters.memory.beliefs import MemoryBeliefs
from weft.adapters.memory.store import MemoryStore
from weft.adapters.memory.vectors import MemoryVectors

__all__ = ["MemoryBeliefs", "MemoryStore", "MemoryVectors"]
