"""Filters for lists of runs."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from turnloom.board.spec.artifacts import instant
from turnloom.errors import UsageError
from turnloom.kernel.arguments import as_name, as_names
from turnloom.kernel.durations import length
from turnloom.kernel.values import nearest
from turnloom.log.logic import STATUSES
from turnloom.log.spec import RunFilter


class BacktestChoice(NamedTuple):
    """Which runs are backtested: by their ids, or the latest of a workflow."""

    runs: Sequence[str] | None = None
    last: int | None = None
    since: datetime | str | None = None
    workflow: str | None = None


_KNOWN = ("status", "workflow", "user", "since", "until")


def run_filter(given: Mapping[str, Any], now: datetime) -> RunFilter:
    """The filter for these arguments.

    Raises:
        UsageError: a filter or a status is unknown, or a value is invalid.
    """
    for name in given:
        if name not in _KNOWN:
            raise UsageError(f"Unknown filter {name!r}. Known: {', '.join(_KNOWN)}.")
    return RunFilter(
        _statuses(given.get("status")),
        _name(given.get("workflow"), "workflow"),
        _name(given.get("user"), "user"),
        _time(given.get("since"), "since", now),
        until=_time(given.get("until"), "until", now),
    )


def _statuses(given: Any) -> frozenset[str]:
    if given is None:
        return frozenset()
    names = as_names([given] if isinstance(given, str) else given, "`status`")
    for each in names:
        if each not in STATUSES:
            near = nearest(each, STATUSES)
            remedy = f"Did you mean {near!r}?" if near else f"Known: {', '.join(STATUSES)}."
            raise UsageError(f"Unknown status {each!r}. {remedy}")
    return names


def _name(given: Any, what: str) -> str | None:
    return None if given is None else as_name(given, f"`{what}`")


def _time(given: Any, what: str, now: datetime) -> datetime | None:
    try:
        if isinstance(given, str):
            return now - length(given)
        return None if given is None else instant(given, f"`{what}`")
    except ValueError as error:
        raise UsageError(str(error)) from None
