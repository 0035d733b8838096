"""Structured outputs of agents."""
