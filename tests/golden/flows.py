"""Flows whose logs are golden."""
