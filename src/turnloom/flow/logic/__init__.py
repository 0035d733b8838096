"""Decisions, folds and checks of flows."""
