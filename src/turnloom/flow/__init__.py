"""Flows: steps that change a typed state."""
