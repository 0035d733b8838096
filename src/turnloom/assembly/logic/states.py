"""Values of a state by path: reading, type and text."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from types import NoneType, UnionType
from typing import Any, NamedTuple, Union, cast, get_args, get_origin, get_type_hints

from pydantic_core import PydanticSerializationError, to_jsonable_python

from turnloom.errors import ContextUnavailable
from turnloom.kernel.values import canonical, nearest, preview, writable

_ABSENT = object()


class Anything:
    """The type of arbitrary JSON; everything inside it has this type too."""


@dataclass(frozen=True)
class At:
    """Reads the value at a path of a state."""

    path: str

    def __call__(self, state: Any) -> Any:
        """The value."""
        return value_at(state, self.path.split("."))


def value_at(state: Any, names: Sequence[str]) -> Any:
    """The value at a path of a state; null ends the path.

    Raises:
        ContextUnavailable: a name does not exist.
    """
    for name in names:
        if state is None:
            return None
        inside = state
        if isinstance(state, Mapping):
            state = cast(Mapping[str, Any], state).get(name)
        else:
            state = getattr(state, name, _ABSENT)
        if state is _ABSENT:
            raise ContextUnavailable(
                f"The state has no {'.'.join(names)!r}: {type(inside).__name__!r} has no "
                f"{name!r}. Correct the path, or add it to the state."
            )
    return state


def text_of(value: Any) -> str:
    """A value as text: strings as is, null as empty, everything else as JSON.

    Raises:
        ContextUnavailable: it cannot be written as JSON.
    """
    if isinstance(value, Enum):
        value = value.value
    if value is None:
        return ""
    if isinstance(value, str):
        return writable(value)
    try:
        return canonical(to_jsonable_python(value))
    except (PydanticSerializationError, TypeError, ValueError, RecursionError) as error:
        raise ContextUnavailable(
            f"{preview(value)} is neither a text nor JSON. Use a text or a JSON value."
        ) from error


class Typed(NamedTuple):
    """The type at a path, or the problem and its remedy."""

    type: Any
    problem: str = ""
    remedy: str = ""


def type_at(state: Any, names: Sequence[str]) -> Typed:
    """The type at a path of a state type, which is a class or a mapping of names to types."""
    for number, name in enumerate(names):
        found = _inside(state, name, ".".join(names[:number]))
        if found.problem:
            return found
        state = found.type
    if state is Any or state is object:
        return Typed(
            None,
            f"the type of {'.'.join(names)!r} is unknown.",
            "Annotate it with a specific type.",
        )
    return Typed(state)


def _inside(state: Any, name: str, path: str) -> Typed:
    """The type under one name; for an optional value, the type of the value."""
    options = [each for each in _options(state) if each is not NoneType]
    if len(options) != 1:
        several = " | ".join(map(_name_of, options))
        return Typed(None, f"{path!r} is {several}.", "Read it with a function of the state.")
    whole = options[0]
    if whole is Anything:
        return Typed(Anything)
    if get_origin(whole) in (dict, Mapping):
        return Typed(get_args(whole)[1])
    try:
        fields = _fields(whole)
    except (NameError, TypeError) as error:
        return Typed(
            None, f"the types of {_name_of(whole)} cannot be resolved: {error}.", "Correct them."
        )
    if name in fields:
        return Typed(fields[name])
    where = f"{path!r}, a {_name_of(whole)}," if path else _name_of(whole)
    near = nearest(name, fields)
    there = f"Use one of {', '.join(fields)}." if fields else f"Remove {name!r}: it has no fields."
    remedy = f"Did you mean {near!r}?" if near else there
    return Typed(None, f"{where} has no {name!r}.", remedy)


def _options(type: Any) -> tuple[Any, ...]:
    return get_args(type) if get_origin(type) in (Union, UnionType) else (type,)


def _fields(whole: Any) -> Mapping[str, Any]:
    """The fields and properties of a class with their types."""
    if isinstance(whole, Mapping):
        return cast(Mapping[str, Any], whole)
    if not isinstance(whole, type) or whole.__module__ == "builtins":
        return {}
    hints = get_type_hints(whole)
    fields = {name: each for name, each in hints.items() if not name.startswith("_")}
    for name in dir(whole):
        read = getattr(whole, name, None)
        if isinstance(read, property) and not name.startswith(("_", "model_")):
            fields[name] = get_type_hints(read.fget).get("return", Any)
    return fields


def _name_of(type: Any) -> str:
    if isinstance(type, Mapping):
        return "the state"
    return getattr(type, "__name__", None) or str(type)
