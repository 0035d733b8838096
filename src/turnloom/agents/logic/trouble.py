"""What the clients of models raise, by what they have in common."""

from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from math import isfinite
from typing import Any, cast

from turnloom.agents.spec import Patience
from turnloom.kernel.values import as_object, said

# Refusals that are not for good, beside the errors of servers: too slow, in conflict, too many.
PASSING = (408, 409, 425, 429)

# A refusal for too many requests that is for good: nobody pays for them.
QUOTA = "insufficient_quota"

# What no request makes better: whoever asks is wrong, or the answer is.
MISTAKES = (AttributeError, ImportError, LookupError, TypeError, ValueError)


def may_pass(error: BaseException) -> bool:
    """Whether the same request may be answered when it is made again: by its status, or as there
    was no response at all."""
    if (status := status_of(error)) is not None:
        return passes(status) and getattr(error, "code", None) != QUOTA
    return isinstance(error, Exception) and not isinstance(error, MISTAKES)


def passes(status: int | None) -> bool:
    """Whether a provider that refuses with that status may answer later."""
    return status is not None and (status in PASSING or status >= 500)


def status_of(error: BaseException) -> int | None:
    """The status with which a provider refused, by either name that libraries have for it."""
    status = getattr(error, "status_code", getattr(error, "status", None))
    return status if isinstance(status, int) else None


def asked_pause(error: BaseException | None) -> float:
    """The seconds that a provider asks to be left alone for, as a library or its response says."""
    if (seconds := getattr(error, "retry_after", None)) is not None:
        return float(seconds)
    response = getattr(error, "response", None)
    headers = cast("Mapping[str, str]", getattr(response, "headers", None) or {})
    asked = headers.get("retry-after", "")
    try:
        seconds = float(asked) if asked[-1:].isdigit() else _until(asked, headers.get("date", ""))
    except (TypeError, ValueError):  # neither seconds nor a date; the usual pause is as good
        return 0.0
    return seconds if isfinite(seconds) else 0.0


def _until(date: str, now: str) -> float:
    """The seconds to a date, by the clock of whoever named it."""
    return (parsedate_to_datetime(date) - parsedate_to_datetime(now)).total_seconds()


def told(error: BaseException, model: str, tried: int, patience: Patience) -> str:
    """What went wrong, with what the provider says to it."""
    who = f"Model {model!r}, asked {tried} times," if tried > 1 else f"Model {model!r}"
    if isinstance(error, TimeoutError):
        return f"{who} was silent for {patience.timeout:g} s. Let `Patience` be longer."
    if (status := status_of(error)) is not None:
        return f"{who} refused with status {status}: {_message(error)}"
    return f"{who} gave no answer: {said(error)}"


def _message(error: Any) -> str:
    """What the body of a refusal says to people, or else the library."""
    body = getattr(error, "body", None) or getattr(error, "message", error)
    given = as_object(body) or {}
    inner = as_object(given.get("error")) or given
    return str(inner.get("message", body))
