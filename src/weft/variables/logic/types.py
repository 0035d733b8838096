"""Declared types: does a value fit, and what does a text from outside become?"""

from typing import NamedTuple

import msgspec

from weft.kernel.values import Json, as_array, as_object, kind_of, preview
from weft.variables.spec import Definition

TRUE = frozenset({"1", "true", "yes", "on"})
FALSE = frozenset({"0", "false", "no", "off", ""})


class Coerced(NamedTuple):
    """A text from outside as a value, and what was odd about it."""

    value: Json
    note: str = ""
    failed: bool = False


def misfit(definition: Definition, value: Json) -> str | None:
    """Why a value does not fit its definition, or nothing when it does. Null always fits."""
    if value is None:
        return None
    declared = "object" if definition.type == "document" else definition.type
    found = kind_of(value)
    if declared and found != declared and not (declared == "number" and found == "integer"):
        return f"{definition.name!r} is declared {definition.type}, and {preview(value)} is {found}"
    if definition.enum is not None and not any(same(value, allowed) for allowed in definition.enum):
        allowed = preview(list(definition.enum))
        return f"{definition.name!r} allows {allowed}, not {preview(value)}"
    return None


def same(a: Json, b: Json) -> bool:
    """Equality of JSON values: true is not 1, however deep."""
    if (one := as_object(a)) is not None and (other := as_object(b)) is not None:
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if (ones := as_array(a)) is not None and (others := as_array(b)) is not None:
        return len(ones) == len(others) and all(map(same, ones, others))
    return a == b and isinstance(a, bool) == isinstance(b, bool)


def coerce(definition: Definition, text: str) -> Coerced:
    """The text of an environment variable as the declared type."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return Coerced(None, f"{preview(text)} is not UTF-8; the default is used", True)
    match definition.type:
        case "boolean":
            coerced = _boolean(text)
        case "string":
            coerced = Coerced(text)
        case _:
            coerced = _parsed(definition, text)
    problem = misfit(definition, coerced.value)
    return Coerced(None, f"{problem}; the default is used", True) if problem else coerced


def _boolean(text: str) -> Coerced:
    word = text.strip().lower()
    if word in TRUE:
        return Coerced(True)
    note = "" if word in FALSE else f"{preview(text)} is neither true nor false; taken as false"
    return Coerced(False, note)


def _parsed(definition: Definition, text: str) -> Coerced:
    try:
        return Coerced(msgspec.json.decode(text))
    except (msgspec.MsgspecError, RecursionError):
        return Coerced(None, f"{preview(text)} is not {definition.type}; the default is used", True)
