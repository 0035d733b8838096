"""Marks: placeholders for secrets, and text that only looks like one."""

from typing import Any, TypeVar, cast

import msgspec

# The start of every mark, and its replacement in text from outside. The space keeps such text
# legible, needs no escape in JSON, and replacing twice changes nothing more.
BEGIN, NEUTRAL = "⟨secret:", "⟨secret :"

T = TypeVar("T")

_encode = msgspec.json.Encoder().encode
_BEGIN = BEGIN.encode()


class Mark(msgspec.Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """The position of a secret's mark in a text."""

    secret: str
    start: int


def mark(name: str) -> str:
    """The placeholder for a secret."""
    return f"{BEGIN}{name}⟩"


def neutral(value: T) -> T:
    """Text or data from outside, with everything that looks like a mark defused."""
    if isinstance(value, str):
        return cast(T, value.replace(BEGIN, NEUTRAL)) if BEGIN in value else value
    return cast(T, _neutral(value)) if value and _may_hold_mark(value) else value


def _may_hold_mark(value: object) -> bool:
    """Whether data may hold a mark: much faster than checking each string."""
    try:
        return _BEGIN in _encode(value)
    except RecursionError:
        return False  # it is too deep to be recorded
    except (OverflowError, TypeError, ValueError):
        return True  # it is not JSON, or not that of every store


def _neutral(value: Any) -> Any:
    if isinstance(value, str):
        return value.replace(BEGIN, NEUTRAL)
    if isinstance(value, dict):
        mapping = cast(dict[Any, Any], value)
        return {_neutral(key): _neutral(each) for key, each in mapping.items()}
    if isinstance(value, msgspec.Struct):
        said = {name: _neutral(getattr(value, name)) for name in value.__struct_fields__}
        return msgspec.structs.replace(value, **said)
    if isinstance(value, list | frozenset):
        items = cast(list[Any], value)
        return type(items)(map(_neutral, items))
    if isinstance(value, tuple):
        return tuple(map(_neutral, cast(tuple[Any, ...], value)))
    return value
