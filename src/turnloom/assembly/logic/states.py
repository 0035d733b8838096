"""The state of a moment: what stands at a path of it, of which type, and as text."""

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
    """The type of JSON of any form: whatever is inside of it has this type too."""


@dataclass(frozen=True)
class At:
    """Reads what stands at a path of a state."""

    path: str

    def __call__(self, state: Any) -> Any:
        """What stands there."""
        return value_at(state, self.path.split("."))


def value_at(state: Any, names: Sequence[str]) -> Any:
    """What stands in a state under these names; null is as far as it goes.

    Raises:
        ContextUnavailable: there is no such name.
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
                f"A {type(inside).__name__!r} of the state has no {name!r} (path "
                f"{'.'.join(names)!r}). Correct the path, or give the state that."
            )
    return state


def text_of(value: Any) -> str:
    """A value as text: a text is itself, null is empty, all else is JSON.

    Raises:
        ContextUnavailable: it is none of these.
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
            f"{preview(value)} is neither a text nor JSON. Give a text, or a value that can be "
            "written as JSON."
        ) from error


class Typed(NamedTuple):
    """The type of what stands at a path, or why it is not known and what to do."""

    type: Any
    problem: str = ""
    remedy: str = ""


def type_at(state: Any, names: Sequence[str]) -> Typed:
    """The type that a state of this type, a class or its names and types, has under these names."""
    for number, name in enumerate(names):
        found = _inside(state, name, ".".join(names[:number]))
        if found.problem:
            return found
        state = found.type
    if state is Any or state is object:
        return Typed(
            None,
            f"the type of {'.'.join(names)!r} is not known.",
            "Annotate it with what it is.",
        )
    return Typed(state)


def _inside(state: Any, name: str, path: str) -> Typed:
    """The type under one name; of a value that may be null, that of the value."""
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
    there = f"Use one of {', '.join(fields)}." if fields else f"Drop {name!r}: it has no fields."
    remedy = f"Did you mean {near!r}?" if near else there
    return Typed(None, f"{where} has no {name!r}.", remedy)


def _options(type: Any) -> tuple[Any, ...]:
    return get_args(type) if get_origin(type) in (Union, UnionType) else (type,)


def _fields(whole: Any) -> Mapping[str, Any]:
    """The fields and properties of a class with their types, as far as it has any of its own."""
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
