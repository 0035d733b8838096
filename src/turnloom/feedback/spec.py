"""Feedback on runs and turns."""

from datetime import datetime
from typing import NamedTuple

import msgspec

# The most characters of a name or label, and of a comment; the most feedback on one run.
MOST_NAME = 100
MOST_COMMENT = 10_000
MOST_FEEDBACK = 1000


class Feedback(msgspec.Struct, frozen=True):
    """What one person thinks of a run, or of one of its turns: a `score` or a `label` under a
    `name`, with a `comment`. A second one of the same person, name and turn replaces the first."""

    run: str
    turn: int | None
    name: str
    score: float | None
    label: str | None
    comment: str
    who: str
    at: datetime


class FeedbackFilter(NamedTuple):
    """Which feedback counts: of this name, with this label, or with a score in the bounds. `above`
    and `below` are exclusive, `least` and `most` inclusive."""

    name: str
    label: str | None = None
    least: float | None = None
    most: float | None = None
    above: float | None = None
    below: float | None = None
