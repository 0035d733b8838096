"""Boards whose logs are golden."""
