"""Filters for lists of runs."""

from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from contextlib import aclosing
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict

from turnloom.board.spec.artifacts import instant
from turnloom.errors import UsageError
from turnloom.kernel.arguments import as_count, as_name, as_names, as_string
from turnloom.kernel.durations import length
from turnloom.kernel.values import nearest
from turnloom.log.logic import STATUSES
from turnloom.log.spec import OPEN, RunFilter
from turnloom.runtime.spec import LIMITED, STRANDED, RunSummary

if TYPE_CHECKING:
    from turnloom.wiring import Parts


class RunChoice(TypedDict, total=False):
    """Filters for lists of runs; what is left out does not restrict."""

    status: str | Collection[str]
    workflow: str
    user: str
    since: datetime | str
    until: datetime | str
    feedback: str
    find: str


class BacktestChoice(NamedTuple):
    """Which runs are backtested: by their ids, or the latest of a workflow."""

    runs: Sequence[str] | None = None
    last: int | None = None
    since: datetime | str | None = None
    workflow: str | None = None
    feedback: str | None = None


# Runs that are listed at a time when some are left out, and the filters that leave them out.
PAGE = 100
_SIFTED = frozenset({"feedback", "find"})

# The statuses of open runs that a log does not know, and every status of a listed run.
_SCHEDULED = frozenset({LIMITED, STRANDED})
LISTED = (*STATUSES, *sorted(_SCHEDULED))


async def list_runs(
    parts: "Parts",
    tenant: str,
    limit: int,
    before: str | None,
    which: RunChoice,
    *,
    unfinished: bool,
    explains: bool = True,
) -> list[RunSummary]:
    """At most `limit` runs of a tenant that are chosen, the latest first. `explains`: with the
    reasons of those that ended.

    Raises:
        UnknownRun: there is no run `before`.
        UsageError: an argument is invalid.
    """
    most = as_count(limit, "`limit`", 0)
    last = None if before is None else as_name(before, "`before`")
    statuses = _statuses(which.get("status"), LISTED)
    if not which.keys() & _SIFTED and not statuses & (OPEN | _SCHEDULED):
        chosen = run_filter(which, parts.clock.now())
        return await parts.runs.summaries.page(
            tenant, most, last, chosen, unfinished=unfinished, explains=explains
        )
    if statuses & _SCHEDULED:
        which = {**which, "status": statuses - _SCHEDULED | OPEN}
    pages = _pages(parts, tenant, last, which, unfinished=unfinished, explains=explains)
    found: list[RunSummary] = []
    async with aclosing(pages):
        async for page in pages:
            shown = [each for each in page if not statuses or each.status in statuses]
            found += shown[: most - len(found)]
            if len(found) == most:
                break
    return found


async def _pages(
    parts: "Parts",
    tenant: str,
    before: str | None,
    which: RunChoice,
    *,
    unfinished: bool,
    explains: bool,
) -> AsyncGenerator[list[RunSummary]]:
    """The chosen runs with the chosen feedback and words, in pages. The cost is proportional to the
    chosen runs, also of those without."""
    from turnloom.feedback.logic import as_filter

    others = {name: value for name, value in which.items() if name not in _SIFTED}
    chosen = run_filter(others, parts.clock.now())
    words = as_string(which.get("find", ""), "`find`").casefold().split()
    wanted = as_filter(which["feedback"]) if "feedback" in which else None
    while True:
        page = await parts.runs.summaries.page(
            tenant, PAGE, before, chosen, unfinished=unfinished, explains=explains
        )
        named = [each for each in page if _has(each, words)]
        if wanted is not None:
            ids = [each.run for each in named]
            liked = await parts.runs.feedback.chosen(tenant, ids, wanted)
            named = [each for each in named if each.run in liked]
        yield named
        if len(page) < PAGE:
            return
        before = page[-1].run


_KNOWN = ("status", "workflow", "user", "since", "until", "feedback", "find")


def _has(run: RunSummary, words: Sequence[str]) -> bool:
    """Whether all words are in a run's line."""
    line = f"{run.run} {run.workflow} {run.user} {run.standing} {run.reason}".casefold()
    return all(word in line for word in words)


def run_filter(given: Mapping[str, Any], now: datetime) -> RunFilter:
    """The filter for these arguments.

    Raises:
        UsageError: a filter or a status is unknown, or a value is invalid.
    """
    for name in given:
        if name not in _KNOWN:
            raise UsageError(f"Unknown filter {name!r}. Known: {', '.join(_KNOWN)}.")
    return RunFilter(
        _statuses(given.get("status"), STATUSES),
        _name(given.get("workflow"), "workflow"),
        _name(given.get("user"), "user"),
        time_of(given.get("since"), "since", now),
        until=time_of(given.get("until"), "until", now),
    )


def _statuses(given: Any, known: Sequence[str]) -> frozenset[str]:
    if given is None:
        return frozenset()
    names = as_names([given] if isinstance(given, str) else given, "`status`")
    for each in names:
        if each not in known:
            near = nearest(each, known)
            remedy = f"Did you mean {near!r}?" if near else f"Known: {', '.join(known)}."
            raise UsageError(f"Unknown status {each!r}. {remedy}")
    return names


def _name(given: Any, what: str) -> str | None:
    return None if given is None else as_name(given, f"`{what}`")


def later_time(given: Any, what: str, now: datetime) -> datetime | None:
    """An instant, or the end of an age such as `90d` that begins now.

    Raises:
        UsageError: it is neither.
    """
    try:
        if isinstance(given, str):
            return now + length(given)
        return None if given is None else instant(given, what)
    except ValueError as error:
        raise UsageError(str(error)) from None


def time_of(given: Any, what: str, now: datetime) -> datetime | None:
    """An instant, or the beginning of an age such as `1h` that ends now.

    Raises:
        UsageError: it is neither.
    """
    try:
        if isinstance(given, str):
            return now - length(given)
        return None if given is None else instant(given, f"`{what}`")
    except ValueError as error:
        raise UsageError(str(error)) from None
