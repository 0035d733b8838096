"""Stores that live and die with their process: for tests, trials and runs that nobody resumes."""

from turnloom.adapters.memory.log import MemoryBeliefs
from turnloom.adapters.memory.store import MemoryStore
from turnloom.adapters.memory.vectors import MemoryVectors

__all__ = ["MemoryBeliefs", "MemoryStore", "MemoryVectors"]
