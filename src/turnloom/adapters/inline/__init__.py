"""Scheduler that drives runs as tasks of this process, and places of limits in it."""

from turnloom.adapters.inline.permits import InlinePermits
from turnloom.adapters.inline.scheduler import InlineScheduler

__all__ = ["InlinePermits", "InlineScheduler"]
