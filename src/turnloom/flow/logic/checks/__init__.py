"""Checks of flows, by subject."""
