"""Agents, their engines and tools, and the state of a run."""
