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


def _name(event: Plain) -> Plain | None:
    if event["kind"] != "run.started":
        return event
    data = {**event["data"], "definition": "", "code": sorted(event["data"].get("code", ()))}
    return {**event, "data": data}


def _pause(event: Plain) -> Plain | None:
    return None if event["kind"] == "run.paused" else event


def _delivery(event: Plain) -> Plain | None:
    return None if event["kind"] == "artifact.forwarded" else event


# The frame of the one turn in which a message hook failed, and the message that it was to change:
# as the golden log has them, and as they are now.
HOOKED = {"5cf624c7b13fa1a833e62da5", "cd41ca49f7b6db67065b703d"}
UNCHANGED = {"\n\nclerk: A note.", "\n\nclerk: [withheld: message hook 'stumble' failed]"}


def _withheld(event: Plain) -> Plain | None:
    data = event["data"]
    if event["kind"] == "model.called" and data["request"] in HOOKED:
        return {**event, "data": {**data, "request": ""}}
    if event["kind"] != "frame.assembled" or data["digest"] not in HOOKED:
        return event
    segments = [each for each in data["segments"] if each["text"] not in UNCHANGED]
    return {**event, "data": {**data, "digest": "", "view": "", "tokens": 0, "segments": segments}}


ALLOWED: Sequence[Allowance] = (
    Allowance(_withheld, "a message that a hook was to change, and did not, is withheld"),
    Allowance(_pause, "a run is paused when it parks, not whenever somebody is asked"),
    Allowance(_delivery, "that an artifact was handed to a collecting run is on record now"),
    Allowance(_name, "the code of folders and boards imports this package, which was renamed"),
    Allowance(_resumption, "where a program was killed is not what is compared"),
)


# Kinds of events whose place among the others of their path does not count.
APART = {
    "loop.checked": "a turn is compared with others before it is settled, in every form",
    "loop.detected": "the same",
    "selection.judged": "a choice is judged after the turn has ended, in every form",
}


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
