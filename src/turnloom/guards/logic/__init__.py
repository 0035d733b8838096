"""Decisions of guards, and the fold of their state."""
