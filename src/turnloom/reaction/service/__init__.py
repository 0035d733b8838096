"""Calls of the board's user code."""
