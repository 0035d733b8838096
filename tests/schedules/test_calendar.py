"""Cron expressions in time zones, also where clocks are changed."""

from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import islice

import pytest

from turnloom.adapters.cronsim import CronCalendar
from turnloom.schedules.logic import due

BERLIN = "Europe/Berlin"


def firings(cron: str, after: str, count: int, zone: str = BERLIN) -> list[str]:
    start = datetime.fromisoformat(after).replace(tzinfo=UTC)
    found = islice(CronCalendar().firings(cron, zone, start), count)
    return [f"{each:%m-%d %H:%M}" for each in found]


def test_time_zones() -> None:
    assert firings("0 7 * * MON-FRI", "2026-01-02", 3) == [
        "01-02 06:00",
        "01-05 06:00",
        "01-06 06:00",
    ]
    assert firings("0 7 * * *", "2026-07-01", 1) == ["07-01 05:00"]
    assert firings("0 7 * * *", "2026-07-01", 1, "UTC") == ["07-01 07:00"]
    assert firings("30 1 29 2 *", "2026-01-01", 1, "UTC") == ["02-29 01:30"]


def test_clocks_are_put_forward() -> None:
    """On 29 March 2026, 02:00 is followed by 03:00."""
    assert firings("30 2 * * *", "2026-03-28", 3) == ["03-28 01:30", "03-29 01:00", "03-30 00:30"]
    assert firings("0,30 2 * * *", "2026-03-29", 2) == ["03-29 01:00", "03-30 00:00"]
    assert firings("0 * * * *", "2026-03-29", 3) == ["03-29 01:00", "03-29 02:00", "03-29 03:00"]


def test_clocks_are_put_back() -> None:
    """On 25 October 2026, 02:00 to 03:00 comes twice: a daily firing comes once, an hourly one each
    hour."""
    assert firings("30 2 * * *", "2026-10-24", 3) == ["10-24 00:30", "10-25 00:30", "10-26 01:30"]
    # From within the second of the two hours, no firing of the first comes again.
    assert firings("30 2 * * *", "2026-10-25T01:10", 1) == ["10-26 01:30"]
    assert firings("30 * * * *", "2026-10-25", 3) == ["10-25 00:30", "10-25 01:30", "10-25 02:30"]


@pytest.mark.parametrize("zone", [BERLIN, "America/New_York", "Australia/Lord_Howe", "UTC"])
@pytest.mark.parametrize("cron", ["30 2 * * *", "*/15 * * * *", "0 1-3 * * *", "15 */2 * * *"])
def test_firings_only_go_forward(cron: str, zone: str) -> None:
    start = datetime(2026, 3, 1, tzinfo=UTC)
    found = [*islice(CronCalendar().firings(cron, zone, start), 900)]
    assert found == sorted(set(found))
    for number in range(0, 900, 37):  # whenever one looks, the same follows
        after = found[number]
        assert next(CronCalendar().firings(cron, zone, after)) == found[number + 1]


@pytest.mark.parametrize(
    ("cron", "zone", "field"),
    [
        ("", "UTC", "cron"),
        ("* * * *", "UTC", "cron"),
        ("* * * * * *", "UTC", "cron"),
        ("60 * * * *", "UTC", "cron"),
        ("0 0 31 2 *", "UTC", "cron"),
        ("@daily", "UTC", "cron"),
        ("0 0 * * " + "1," * 1000, "UTC", "cron"),
        ("0 0 * * *", "Mars/Base", "timezone"),
        ("0 0 * * *", "America", "timezone"),
        ("0 0 * * *", "../../etc/passwd", "timezone"),
        ("0 0 * * *", "/etc/passwd", "timezone"),
        ("0 0 * * *", "", "timezone"),
    ],
)
def test_problems(cron: str, zone: str, field: str) -> None:
    problem = CronCalendar().problem(cron, zone)
    assert problem is not None and problem[0] == field


NOW = datetime(2026, 3, 1, 12, 0, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("cron", "last", "missed", "expected"),
    [
        ("0 12 * * *", timedelta(hours=1), "skip", ["03-01 12:00"]),
        ("0 12 * * *", timedelta(seconds=10), "skip", []),
        ("0 11 * * *", timedelta(hours=9), "skip", []),
        ("0 11 * * *", timedelta(hours=9), "once", ["03-01 11:00"]),
        ("0 11 * * *", timedelta(days=900), "once", ["03-01 11:00"]),
        ("* * * * *", timedelta(days=900), "once", ["03-01 12:00"]),
        ("* * * * *", timedelta(days=900), "skip", ["03-01 12:00"]),
        ("0 0 1 1 *", timedelta(days=900), "once", ["01-01 00:00"]),
        ("0 0 1 1 *", timedelta(days=3), "once", []),
        ("0 0 29 2 *", timedelta(days=20_000), "once", ["02-29 00:00"]),
    ],
)
def test_what_is_due(cron: str, last: timedelta, missed: str, expected: list[str]) -> None:
    firings = partial(CronCalendar().firings, cron, "UTC")
    assert [f"{each:%m-%d %H:%M}" for each in due(firings, NOW - last, NOW, missed)] == expected
