"""What may differ between a golden log and the log of today, and why.

Each entry takes an event out of both logs, or changes it in both. An entry stays as long as the
golden logs hold what it is about.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

Plain = dict[str, Any]


class Allowance(NamedTuple):
    """A difference, as a change to an event (`None`: it does not count), and its reason."""

    change: Callable[[Plain], Plain | None]
    reason: str


def _resumption(event: Plain) -> Plain | None:
    return None if event["kind"] == "run.resumed" or event["data"].get("restored") else event


def _code_of_a_flow(event: Plain) -> Plain | None:
    is_flow = event["kind"] == "run.started" and event["data"].get("form") == "flow"
    return {**event, "data": {**event["data"], "code": {}}} if is_flow else event


def _sizes_in_characters(event: Plain) -> Plain | None:
    withheld = event["data"].get("withheld") if event["kind"] == "frame.assembled" else None
    if not withheld:
        return event
    unsized = [{**e, "detail": ""} if e["reason"] == "over_budget" else e for e in withheld]
    return {**event, "data": {**event["data"], "withheld": unsized}}


ALLOWED: Sequence[Allowance] = (
    Allowance(_resumption, "where a program was killed is not what is compared"),
    Allowance(_sizes_in_characters, "what did not fit is measured in tokens since then"),
    Allowance(_code_of_a_flow, "the text of the steps that are played is not what is compared"),
)


def without_allowed(events: Sequence[Plain]) -> list[Plain]:
    """A log without what may differ; a cause that is taken out gives way to its own cause."""
    for allowance in ALLOWED:
        events = _apply(allowance, events)
    return [*events]


def _apply(allowance: Allowance, events: Sequence[Plain]) -> list[Plain]:
    kept: list[Plain] = []
    causes: dict[int, int | None] = {}
    for event in events:
        cause = event["cause"]
        while cause in causes:
            cause = causes[cause]
        changed = allowance.change({**event, "cause": cause})
        if changed is None:
            causes[event["seq"]] = cause
        else:
            kept.append(changed)
    return kept
