"""Checks in a separate process."""

from turnloom.adapters.processes.examination import Examination
from turnloom.adapters.processes.isolation import ProcessEnding, run_in_process

__all__ = ["Examination", "ProcessEnding", "run_in_process"]
