"""Parsing of durations, and instants in the future."""

import re
from datetime import UTC, datetime, timedelta

# The latest instant: a year that every time zone can represent.
NEVER = datetime(9999, 1, 1, tzinfo=UTC)

_ISO = re.compile(
    r"P(?:(?P<W>\d+(?:\.\d+)?)W)?(?:(?P<D>\d+(?:\.\d+)?)D)?"
    r"(?:T(?=\d)(?:(?P<H>\d+(?:\.\d+)?)H)?(?:(?P<M>\d+(?:\.\d+)?)M)?(?:(?P<S>\d+(?:\.\d+)?)S)?)?"
)
_LENGTHS = {"W": 604800, "D": 86400, "H": 3600, "M": 60, "S": 1}


def seconds(text: str) -> float:
    """The seconds of an ISO 8601 duration such as `PT1H30M`; months and years are not supported.

    Raises:
        ValueError: the text is not such a duration.
    """
    found = _ISO.fullmatch(text.strip().upper())
    given = {unit: part for unit, part in found.groupdict().items() if part} if found else {}
    if not given:
        raise ValueError(
            f"{text!r} is not a duration. Write seconds (90) or ISO 8601 (PT1M30S, P1D)."
        )
    return sum(float(part) * _LENGTHS[unit] for unit, part in given.items())


_LENGTH = re.compile(r"(\d{1,6})([wdhms])")


def is_length(text: str) -> bool:
    """Whether a text is a duration such as `30d`."""
    return _LENGTH.fullmatch(text.strip()) is not None


def length(text: str) -> timedelta:
    """Parse a duration such as `30d`, `12h` or `90m`.

    Raises:
        ValueError: the text is not such a duration.
    """
    found = _LENGTH.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"{text!r} is not a duration. Write 30d, 12h, 90m, 45s or 2w.")
    return timedelta(seconds=int(found[1]) * _LENGTHS[found[2].upper()])


def later(now: datetime, seconds: float) -> datetime:
    """The instant `seconds` after `now`; `NEVER` if that is out of range."""
    try:
        return min(now + timedelta(seconds=seconds), NEVER)
    except OverflowError:
        return NEVER
