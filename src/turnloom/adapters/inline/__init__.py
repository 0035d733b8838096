"""Scheduler that drives runs as tasks of this process."""

from turnloom.adapters.inline.scheduler import InlineScheduler

__all__ = ["InlineScheduler"]
