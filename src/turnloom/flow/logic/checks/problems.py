"""Diagnostics of flows, at the lines of the builder calls."""

from turnloom.errors import Diagnostic
from turnloom.flow.spec.nodes import Site


def problem(
    site: Site, code: str, message: str, remedy: str, severity: str = "error"
) -> Diagnostic:
    """A diagnostic at the line of a builder call."""
    return Diagnostic(site.file, site.line, code, message, remedy=remedy, severity=severity)


def is_count(value: object, least: int) -> bool:
    """Whether a value is a whole number of at least `least`."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def is_number(value: object) -> bool:
    """Whether a value is a number, and not NaN."""
    return isinstance(value, int | float) and not isinstance(value, bool) and value == value
