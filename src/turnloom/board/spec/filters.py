"""Which artifacts are asked for."""

from collections.abc import Sequence, Set
from datetime import datetime
from typing import Annotated, Any, Literal, cast

from pydantic import AfterValidator, BeforeValidator, Field, JsonValue, Strict

from turnloom.board.spec.values import instant
from turnloom.kernel.models import Declared
from turnloom.kernel.values import kind_of, preview

# How many names a set of a filter has at most, how many values `in` has, and how many conditions
# there are.
MOST_NAMES = 1000
MOST_CONDITIONS = 100

Operator = Literal["eq", "ne", "lt", "le", "gt", "ge", "in", "contains", "exists"]

# What the value beside an operator must be, where not every value makes sense.
_FITTING: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("lt", "le", "gt", "ge"), ("integer", "number", "string")),
    "in": ("array",),
    "exists": ("boolean",),
}


def _sensible(where: tuple[str, Operator, Any]) -> tuple[str, Operator, Any]:
    path, operator, value = where
    if not all(path.split(".")):
        raise ValueError(
            f"{path!r} leads nowhere. Write names with dots between them, as in 'price.amount'."
        )
    fitting = _FITTING.get(operator)
    if fitting and kind_of(value) not in fitting:
        raise ValueError(
            f"{operator!r} at {path!r} needs {' or '.join(fitting)}, not {preview(value)}. "
            "Correct the value."
        )
    if isinstance(value, list) and len(cast(list[Any], value)) > MOST_NAMES:
        raise ValueError(f"{operator!r} at {path!r} has more than {MOST_NAMES} values.")
    return where


def _aware(value: object) -> datetime:
    """An instant out of a datetime or ISO 8601; a bare number is neither."""
    if not isinstance(value, str):
        return instant(value, "The time")
    try:
        return instant(datetime.fromisoformat(value), "The time")
    except ValueError as error:
        raise ValueError(
            f"{value!r} names no instant. Write one with a zone, as in '2026-01-31T12:00:00Z'."
        ) from error


# A path into the payload, an operator, and what to compare with.
Where = Annotated[tuple[str, Operator, JsonValue], Strict(False), AfterValidator(_sensible)]

# What is said as a list in a file; one text is not a set of letters.
_Names = Annotated[Set[str], Strict(False), Field(max_length=MOST_NAMES)]
_Instant = Annotated[datetime, BeforeValidator(_aware)]


class TagFilter(Declared):
    """Which tags an artifact must have, any or all of them, and which it must not have."""

    include: _Names | None = None
    exclude: _Names = frozenset()
    match: Literal["any", "all"] = "any"


class FilterConfig(Declared):
    """What an artifact must be to be found. What is left out asks nothing; an empty set finds
    nothing. The window includes both of its ends."""

    types: _Names | None = None
    tags: TagFilter | None = None
    produced_by: _Names | None = None
    correlation_id: str | None = None
    runs: _Names | None = None
    partition: str | None = None
    since: _Instant | None = None
    until: _Instant | None = None
    where: Annotated[Sequence[Where], Field(max_length=MOST_CONDITIONS), AfterValidator(tuple)] = ()
    limit: int | None = Field(default=None, ge=1)
    order: Literal["created_at", "-created_at"] = "created_at"
