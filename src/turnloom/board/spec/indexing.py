"""Checks of the indexed fields of artifact types."""

from collections.abc import Sequence
from datetime import date, time
from enum import Enum
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, cast, get_args, get_origin

from pydantic import BaseModel

from turnloom.errors import UsageError
from turnloom.kernel.values import nearest, preview

# Types with scalar JSON values.
_SIMPLE = (str, int, float, Enum, date, time, NoneType)


def checked_index(model: type[BaseModel], index: Sequence[str]) -> tuple[str, ...]:
    """The names of the indexed fields, sorted.

    Raises:
        UsageError: this is not a list of names, or a name is unknown, repeated or not scalar.
    """
    given = cast(object, index)
    names = cast(Sequence[object], given) if isinstance(given, list | tuple) else None
    if names is None or not all(isinstance(each, str) for each in names):
        raise UsageError(
            f"`index` of {model.__name__!r} must be a list of field names, not {preview(given)}. "
            "Write `index=['n']`."
        )
    fields = _fields(model)
    for number, name in enumerate(index):
        if name not in fields:
            raise UsageError(_unknown(model, name, fields))
        if name in index[:number]:
            raise UsageError(f"`index` of {model.__name__!r} has {name!r} twice. Remove one.")
        if not _is_simple(fields[name]):
            raise UsageError(
                f"Field {name!r} of {model.__name__!r} cannot be indexed: its values are not "
                "texts, numbers, booleans, dates, enumerations or literals. "
                "Name another field, or add a scalar field to index."
            )
    return tuple(sorted(index))


def _fields(model: type[BaseModel]) -> dict[str, Any]:
    """The types of fields, by their names in payloads, which conditions of filters use."""
    known = {
        field.serialization_alias or field.alias or name: field.annotation
        for name, field in model.model_fields.items()
        if not field.exclude
    }
    return {name: kind for name, kind in known.items() if "." not in name}


def _unknown(model: type[BaseModel], name: str, fields: dict[str, Any]) -> str:
    hint = nearest(name, fields)
    remedy = f"Did you mean {hint!r}?" if hint else "Use one of these."
    known = ", ".join(fields) or "none"
    return (
        f"`index` of {model.__name__!r} names {name!r}, which is not a field of its payloads. "
        f"Fields: {known}. {remedy}"
    )


def _is_simple(kind: Any) -> bool:
    origin = get_origin(kind)
    if origin is Literal:
        return True
    if origin is Annotated:
        return _is_simple(get_args(kind)[0])
    if origin in (Union, UnionType):
        return all(map(_is_simple, get_args(kind)))
    return isinstance(kind, type) and issubclass(kind, _SIMPLE)
