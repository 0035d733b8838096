"""Checks of feedback, and filters for it."""

import math
import operator
import re
from collections.abc import Callable
from datetime import datetime

from turnloom.errors import UsageError
from turnloom.feedback.spec import (
    MOST_COMMENT,
    MOST_FEEDBACK,
    MOST_NAME,
    Feedback,
    FeedbackFilter,
)
from turnloom.kernel.arguments import as_count, as_name, as_string, wrong


def as_feedback(
    run: str,
    turn: object,
    name: object,
    *,
    score: object,
    label: object,
    comment: object,
    by: tuple[str, datetime],
) -> Feedback:
    """Checked feedback.

    Raises:
        UsageError: a value is invalid, or it has neither a score nor a label, or both.
    """
    if (score is None) == (label is None):
        raise UsageError("Give either a score or a label.")
    who, at = by
    return Feedback(
        run,
        None if turn is None else as_count(turn, "`turn`"),
        _word(name, "`name`"),
        None if score is None else _score(score),
        label=None if label is None else _word(label, "`label`"),
        comment=_comment(comment),
        who=as_name(who, "`who`"),
        at=at,
    )


def _word(value: object, what: str) -> str:
    word = as_name(value, what)
    if len(word) > MOST_NAME or not word.isprintable() or word != word.strip():
        remedy = f"Give 1 to {MOST_NAME} printable characters, without spaces around them."
        raise wrong(what, value, remedy)
    return word


def _score(value: object) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            score = float(value)
        except OverflowError:
            score = math.inf
        if math.isfinite(score):
            return score
    raise wrong("`score`", value, "Give a finite number.")


def _comment(value: object) -> str:
    comment = as_string(value, "`comment`")
    if len(comment) > MOST_COMMENT or "\0" in comment:
        raise wrong(
            "`comment`", value, f"Give at most {MOST_COMMENT} characters, none of them NUL."
        )
    return comment


def refuse_more(run: str, count: int) -> None:
    """Refuse further feedback on a run that has as much as it may have."""
    if count >= MOST_FEEDBACK:
        raise UsageError(f"Run {run!r} has {count} feedback entries, the most that it may have.")


# The longer signs first, so that `<=` is not read as `<`.
_CONDITION = re.compile(r"\s*([^<>=]+?)\s*(?:(<=|>=|=(?!=)|<|>)\s*(.*?)\s*)?")
_BOUNDS = {"<": "below", "<=": "most", ">": "above", ">=": "least"}


def as_filter(value: object) -> FeedbackFilter:
    """The filter of a text: a name alone, `NAME=LABEL`, or a name and a bound of its score, as
    `helpful<0.5`.

    Raises:
        UsageError: it is no such text.
    """
    text = as_name(value, "`feedback`")
    found = _CONDITION.fullmatch(text)
    if found is None:
        raise _unreadable(text)
    name, sign, rest = found.groups()
    name = _word(name, "The name of `feedback`")
    if sign is None:
        return FeedbackFilter(name)
    if sign == "=":
        return FeedbackFilter(name, _word(rest, "The label of `feedback`"))
    try:
        bound = _score(float(rest))
    except ValueError:
        raise _unreadable(text) from None
    return FeedbackFilter(name)._replace(**{_BOUNDS[sign]: bound})


def _unreadable(text: str) -> UsageError:
    return UsageError(
        f"`feedback` is {text!r}. Write a name, as 'helpful'; a name and a label, as "
        "'verdict=wrong'; or a name and a bound of its score, as 'helpful<0.5'."
    )


_CHECKS: tuple[tuple[str, Callable[[float, float], bool]], ...] = (
    ("least", operator.ge),
    ("most", operator.le),
    ("above", operator.gt),
    ("below", operator.lt),
)


def is_chosen(given: Feedback, which: FeedbackFilter) -> bool:
    """Whether a filter selects feedback."""
    if given.name != which.name or which.label not in (None, given.label):
        return False
    for field, holds in _CHECKS:
        bound: float | None = getattr(which, field)
        if bound is not None and (given.score is None or not holds(given.score, bound)):
            return False
    return True
