"""Convert BSON values to JSON values.

| BSON | JSON |
|---|---|
| ObjectId, UUID | its text |
| date, timestamp | ISO 8601 text with its offset |
| date before year 1 or after 9999 | a number: milliseconds since 1970 |
| Decimal128 | a number if that is exact, else its text |
| double that is not finite | the text `NaN`, `Infinity` or `-Infinity` |
| binary | base64 text |
| regular expression, code | its text |
| reference to a document | an object with `$ref`, `$id` and perhaps `$db` |
| MinKey, MaxKey | the text `MinKey` or `MaxKey` |
"""

import math
from base64 import b64encode
from collections.abc import Callable, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any, cast
from uuid import UUID

from bson import Code, DatetimeMS, DBRef, Decimal128, MaxKey, MinKey, ObjectId, Regex, Timestamp

from turnloom.kernel.values import Json


def as_json(value: Any) -> Json:
    """The JSON value of a BSON value.

    Raises:
        ValueError: the value has an unknown type.
    """
    match value:
        case None | bool():
            return value
        case Code() | str() | ObjectId() | UUID():
            return str(value)
        case int():
            return int(value)
        case float():
            return _number(value)
        case Mapping():
            inside = cast(Mapping[str, Any], value)
            return {name: as_json(inside[name]) for name in inside}
        case list():
            return [as_json(item) for item in cast(list[Any], value)]
        case _:
            return _convert_rare(value)


def _convert_rare(value: Any) -> Json:
    for kind, convert in _RARE.items():
        if isinstance(value, kind):
            return convert(value)
    raise ValueError(f"no JSON value for type {type(value).__name__}")


def _number(value: float) -> Json:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _decimal(value: Decimal) -> Json:
    if not value.is_finite():
        return str(value)
    number = float(value)
    if number.is_integer() and abs(number) < 2**63 and int(number) == value:
        return int(number)
    return number if Decimal(repr(number)) == value else str(value)


def _pattern(pattern: str | bytes) -> str:
    return pattern if isinstance(pattern, str) else pattern.decode("utf-8", "replace")


def _name(value: object) -> str:
    return type(value).__name__


_RARE: dict[type, Callable[[Any], Json]] = {
    datetime: datetime.isoformat,
    Timestamp: lambda value: value.as_datetime().isoformat(),
    DatetimeMS: int,
    Decimal128: lambda value: _decimal(value.to_decimal()),
    bytes: lambda value: b64encode(value).decode("ascii"),
    Regex: lambda value: _pattern(value.pattern),
    DBRef: lambda value: as_json(value.as_doc()),
    MinKey: _name,
    MaxKey: _name,
}
