"""Times in options."""

from datetime import datetime

from turnloom.errors import UsageError
from turnloom.kernel.durations import is_length


def instant_or_age(said: str | None, option: str) -> datetime | str | None:
    """A time as an option says it; an age, as `1h`, stays as it is.

    Raises:
        UsageError: it is neither.
    """
    return said if said is not None and is_length(said) else instant(said, option)


def instant(said: str | None, option: str) -> datetime | None:
    """A time as an option says it, in the local zone if it names none.

    Raises:
        UsageError: it is none.
    """
    if said is None:
        return None
    try:
        found = datetime.fromisoformat(said)
    except ValueError:
        raise UsageError(
            f"{option} is {said!r}, which names no time. Write it as in 2026-01-31 or "
            "2026-01-31T12:00:00Z."
        ) from None
    return found if found.tzinfo else found.astimezone()
