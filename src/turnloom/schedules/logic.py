"""Read the schedules of `turnloom.toml`, and decide what is due."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, cast

from turnloom.errors import Diagnostic
from turnloom.kernel.arguments import NAME_LENGTH
from turnloom.kernel.digests import chain_digest
from turnloom.kernel.values import is_name, nearest, preview
from turnloom.log.spec import LOCAL
from turnloom.schedules.spec import Schedule

# How late a firing may be and still count as in time.
TOLERANCE = timedelta(seconds=60)

# The firings of a schedule after an instant, ascending.
Firings = Callable[[datetime], Iterator[datetime]]

# Lengths of time in which the latest firing is looked for, so that a schedule that fires each
# minute is not followed through a year.
_WINDOWS = tuple(timedelta(hours=hours) for hours in (1, 24, 32 * 24, 367 * 24, 50 * 366 * 24))


def run_id(tenant: str, schedule: str, at: datetime, *, by_hand: bool = False) -> str:
    """The id of the run that a schedule starts at an instant, by itself or by hand: the same in
    every process."""
    kind = "by hand" if by_hand else "schedule"
    return f"s{chain_digest(kind, tenant, schedule, at.isoformat())}"


def due(firings: Firings, last: datetime, now: datetime, missed: str) -> list[datetime]:
    """The instants after `last` at which a schedule must fire now: those that are in time, or
    else, with `once`, the latest of the missed ones."""
    in_time = [*_until(firings(max(last, now - TOLERANCE)), now)]
    if in_time or missed == "skip":
        return in_time
    for window in _WINDOWS:
        start = max(last, now - window)
        if missing := [*_until(firings(start), now)]:
            return missing[-1:]
        if start == last:
            break
    return []


def _until(firings: Iterator[datetime], end: datetime) -> Iterator[datetime]:
    for each in firings:
        if each > end:
            return
        yield each


_FIELDS = ("name", "workflow", "cron", "timezone", "input", "missed", "user_id", "app_id")
_REQUIRED = ("workflow", "cron")
_MISSED = ("skip", "once")
_HEADER = re.compile(r"\s*\[\[\s*schedule\s*\]\]")
_TABLE = re.compile(r"\s*\[")


class ScheduleReader:
    """Reads the `[[schedule]]` tables of a file, and notes every problem with its line."""

    def __init__(self, file: str, text: str) -> None:
        self._file = file
        self._lines = text.splitlines()
        self.problems: list[Diagnostic] = []

    def read(
        self, given: object, problem_of: Callable[[str, str], tuple[str, str] | None]
    ) -> list[tuple[int, Schedule]]:
        """The schedules of the tables that can be read, with their numbers; `problem_of` judges a
        cron expression in a time zone."""
        if not isinstance(given, list):
            self.note(0, "", "W200", ("`schedule` must be a list.", "Write `[[schedule]]`."))
            return []
        found: list[tuple[int, Schedule]] = []
        for number, each in enumerate(cast(list[object], given)):
            if not isinstance(each, dict):
                remedy = "Write `[[schedule]]`, and its keys below."
                self.note(number, "", "W200", ("A schedule must be a table.", remedy))
                continue
            table, before = cast(dict[str, Any], each), len(self.problems)
            self._check_keys(number, table)
            self._check_values(number, table)
            if len(self.problems) > before:
                continue
            schedule = _schedule(table)
            if bad := problem_of(schedule.cron, schedule.timezone):
                code = "W202" if bad[0] == "cron" else "W203"
                self.note(number, bad[0], code, (bad[1], _REMEDIES[bad[0]]))
            else:
                found.append((number, schedule))
        self._refuse_repeats(found)
        return found

    def note(self, number: int, key: str, code: str, what: tuple[str, str]) -> None:
        """Add a problem, a message and a remedy, with a key of the table of this number."""
        message, remedy = what
        line = self._line(number, key)
        self.problems.append(Diagnostic(self._file, line, code, message, remedy=remedy))

    def _check_keys(self, number: int, table: Mapping[str, Any]) -> None:
        for key in table:
            if key not in _FIELDS:
                near = nearest(key, _FIELDS)
                remedy = f"Did you mean {near!r}?" if near else f"Known: {', '.join(_FIELDS)}."
                self.note(number, key, "W200", (f"Unknown key {key!r} of a schedule.", remedy))
        for key in _REQUIRED:
            if key not in table:
                remedy = f"Add `{key} = …`."
                self.note(number, "", "W200", (f"A schedule needs `{key}`.", remedy))

    def _check_values(self, number: int, table: Mapping[str, Any]) -> None:
        for key in _FIELDS:
            if key != "input" and key in table:
                self._check_name(number, key, table[key])
        if table.get("missed", "skip") not in _MISSED:
            said = f"`missed` is {preview(table['missed'])}."
            self.note(number, "missed", "W200", (said, 'Write "skip" or "once".'))
        if not _is_plain(table.get("input")):
            said = "`input` has a date, a time or a number that JSON lacks."
            self.note(number, "input", "W204", (said, "Write it as a string."))

    def _check_name(self, number: int, key: str, value: object) -> None:
        if not is_name(value) or len(value) > NAME_LENGTH or not value.isprintable():
            said = f"`{key}` is {preview(value)}."
            self.note(number, key, "W200", (said, "Give a string of printable characters."))

    def _refuse_repeats(self, found: Sequence[tuple[int, Schedule]]) -> None:
        """Refuse two schedules of one name, which would share their runs."""
        seen: set[tuple[str, str]] = set()
        for number, each in found:
            if (each.tenant, each.name) in seen:
                said = f"Two schedules are named {each.name!r}; without `name`, it is the workflow."
                self.note(number, "name", "W205", (said, "Give each a `name` of its own."))
            seen.add((each.tenant, each.name))

    def _line(self, number: int, key: str) -> int:
        """The line of a key in a table, or else that of the table."""
        headers = [n for n, line in enumerate(self._lines) if _HEADER.match(line)]
        if number >= len(headers):
            return 1
        start = headers[number]
        for n, line in enumerate(self._lines[start + 1 :], start + 1):
            if _TABLE.match(line):
                break
            if key and re.match(rf"""\s*["']?{re.escape(key)}["']?\s*[.=]""", line):
                return n + 1
        return start + 1


_REMEDIES = {
    "cron": "Write minute, hour, day of month, month, day of week, as '0 7 * * MON-FRI'.",
    "timezone": "Write a name of the IANA database, as 'Europe/Berlin', or 'UTC'.",
}


def _schedule(table: Mapping[str, Any]) -> Schedule:
    return Schedule(
        table.get("name", table["workflow"]),
        table["workflow"],
        " ".join(table["cron"].split()),
        table.get("timezone", "UTC"),
        input=table.get("input"),
        missed=table.get("missed", "skip"),
        user=table.get("user_id", LOCAL),
        tenant=table.get("app_id", LOCAL),
    )


def _is_plain(value: object) -> bool:
    """Whether a value of TOML is one of JSON: TOML also has dates, times and infinite numbers."""
    if isinstance(value, dict):
        return all(_is_plain(each) for each in cast(dict[str, object], value).values())
    if isinstance(value, list):
        return all(_is_plain(each) for each in cast(list[object], value))
    if isinstance(value, float):
        return value - value == 0
    return value is None or isinstance(value, str | int)
