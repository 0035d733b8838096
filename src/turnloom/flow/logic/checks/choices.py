"""Which values a branch goes by, as far as the types of a program say."""

import dis
from collections.abc import Iterable, Sequence
from enum import Enum
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from turnloom.assembly.logic.states import type_at
from turnloom.flow.spec.nodes import BranchNode
from turnloom.kernel.values import preview

# What a function consists of that only reads attributes of its argument.
_READING = {"RESUME", "LOAD_FAST", "LOAD_FAST_BORROW", "LOAD_ATTR", "RETURN_VALUE"}


def read_path(function: Any) -> tuple[str, ...]:
    """The attributes that a function reads one out of the other, if it does nothing else; it is
    not called to find out."""
    code = getattr(function, "__code__", None)
    if code is None or code.co_argcount != 1:
        return ()
    instructions = [*dis.get_instructions(code)]
    if {each.opname for each in instructions} - _READING:
        return ()
    return tuple(each.argval for each in instructions if each.opname == "LOAD_ATTR")


def values_of(on: Any, state: Any) -> tuple[Any, ...] | None:
    """Every value that a branch can go by, if there are only so many."""
    return _values(_type_of(on, state))


def _type_of(on: Any, state: Any) -> Any:
    """What a function gives for a state, by its annotation or by what it reads."""
    try:
        said = get_type_hints(on).get("return", Any)
    except (NameError, TypeError, AttributeError):
        said = Any
    path = read_path(on)
    return type_at(state, path).type if said is Any and path and state is not None else said


def _values(of: Any) -> tuple[Any, ...] | None:
    if of is bool:
        return True, False
    if of is NoneType:
        return (None,)
    if isinstance(of, type) and issubclass(of, Enum):
        return tuple(of)
    if get_origin(of) is Literal:
        return get_args(of)
    if get_origin(of) in (Union, UnionType):
        found = [_values(each) for each in get_args(of)]
        return None if None in found else tuple(each for values in found for each in values or ())
    return None


def missing(node: BranchNode, values: Iterable[Any]) -> list[Any]:
    """The values that a branch has no path for."""
    return [value for value in values if not _has([case for case, _ in node.cases], value)]


def strangers(node: BranchNode, values: Sequence[Any]) -> list[Any]:
    """The values that a branch has a path for and that it never goes by."""
    return [case for case, _ in node.cases if not _has(values, case)]


def _has(values: Iterable[Any], value: Any) -> bool:
    return any(each == value and type(each) is type(value) for each in values)


def written(value: Any) -> str:
    """A value as a program has it."""
    if isinstance(value, Enum):
        return f"{type(value).__name__}.{value.name}"
    return preview(value)
