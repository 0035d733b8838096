"""Checks and routing of conversations."""
