"""Declared types: validation of values and conversion of text."""

from typing import NamedTuple

import msgspec

from turnloom.kernel.marks import mark
from turnloom.kernel.values import Json, as_array, as_object, kind_of, preview
from turnloom.variables.spec import VariableDefinition

TRUE = frozenset({"1", "true", "yes", "on"})
FALSE = frozenset({"0", "false", "no", "off", ""})


class CoercedValue(NamedTuple):
    """A text converted to a value, and a note about problems."""

    value: Json
    note: str = ""
    failed: bool = False


def misfit(definition: VariableDefinition, value: Json) -> str | None:
    """Why a value does not match its definition, or None if it does. Null always matches."""
    if value is None:
        return None
    declared = "object" if definition.type == "document" else definition.type
    found = kind_of(value)
    if declared and found != declared and not (declared == "number" and found == "integer"):
        shown = _shown(definition, value)
        return f"{definition.name!r} must be {definition.type}, but {shown} is {found}"
    if definition.enum is not None and not any(same(value, allowed) for allowed in definition.enum):
        allowed = preview(list(definition.enum))
        return f"{definition.name!r} must be one of {allowed}, not {_shown(definition, value)}"
    if not is_json(value):
        return f"{definition.name!r} must be JSON, not {_shown(definition, value)}"
    return None


def is_misfit(definition: VariableDefinition, note: str) -> bool:
    """Whether a note names a problem that a value has with this definition, too."""
    begins = [f"{definition.name!r} must be {definition.type}, but"]
    if definition.enum is not None:
        allowed = preview(list(definition.enum))
        begins.append(f"{definition.name!r} must be one of {allowed}, not")
    is_unread = note.endswith(f" is not {definition.type}; the default is used")
    return is_unread or note.startswith(tuple(begins))


def _shown(definition: VariableDefinition, value: Json) -> str:
    return mark(definition.name) if definition.secret else preview(value)


def is_json(value: Json) -> bool:
    """Whether a value is JSON: a round trip does not change it."""
    try:
        return same(apart(value), value)
    except (msgspec.MsgspecError, TypeError, ValueError, LookupError, RuntimeError):
        return False  # too deep, or changed by another thread (the last two)


def apart(value: Json) -> Json:
    """A plain, independent copy of a JSON value."""
    return msgspec.json.decode(msgspec.json.encode(value))


def same(a: Json, b: Json) -> bool:
    """Equality of JSON values; unlike in Python, true is not 1."""
    if (one := as_object(a)) is not None and (other := as_object(b)) is not None:
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if (ones := as_array(a)) is not None and (others := as_array(b)) is not None:
        return len(ones) == len(others) and all(map(same, ones, others))
    return a == b and isinstance(a, bool) == isinstance(b, bool)


def coerce(definition: VariableDefinition, text: str) -> CoercedValue:
    """The text of an environment variable, converted to the declared type."""
    try:
        text.encode()
    except UnicodeEncodeError:
        shown = _shown(definition, text)
        return CoercedValue(None, f"{shown} is not UTF-8; the default is used", True)
    match definition.type:
        case "boolean":
            coerced = _boolean(definition, text)
        case "string":
            coerced = CoercedValue(text)
        case _:
            coerced = _parsed(definition, text)
    problem = misfit(definition, coerced.value)
    return CoercedValue(None, f"{problem}; the default is used", True) if problem else coerced


def _boolean(definition: VariableDefinition, text: str) -> CoercedValue:
    word = text.strip().lower()
    if word in TRUE:
        return CoercedValue(True)
    if word in FALSE:
        return CoercedValue(False)
    shown = _shown(definition, text)
    return CoercedValue(False, f"{shown} is neither true nor false; taken as false")


def _parsed(definition: VariableDefinition, text: str) -> CoercedValue:
    try:
        return CoercedValue(msgspec.json.decode(text))
    except (msgspec.MsgspecError, RecursionError):
        shown = _shown(definition, text)
        return CoercedValue(None, f"{shown} is not {definition.type}; the default is used", True)
