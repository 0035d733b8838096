"""Plans as text, identical in every process; runs are pinned to them."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import MISSING, Field, fields
from datetime import date, timedelta
from difflib import unified_diff
from typing import Any, NamedTuple, cast

import msgspec
from pydantic import BaseModel
from pydantic.errors import PydanticUserError
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import to_jsonable_python

from turnloom.assembly.spec.providers import declared_of
from turnloom.board.spec.artifacts import is_visibility
from turnloom.errors import UsageError
from turnloom.kernel.code import qualified
from turnloom.kernel.digests import fingerprint
from turnloom.kernel.models import Declared
from turnloom.kernel.values import Json, as_array, as_object, writable


class PlanWriter(NamedTuple):
    """How a plan is written: declarations of `kinds` field by field, data as is, and code by its
    name."""

    kinds: tuple[type, ...] = ()
    name: Callable[[object], str] = qualified


PLAIN = PlanWriter()


def data_of(declared: Any, how: PlanWriter, without: str = "") -> dict[str, Json]:
    """The fields of a declaration that differ from their defaults, so that a new option changes no
    existing plan."""
    return {
        name: as_data(value, how)
        for name, default in _defaults(declared)
        if name != without and (value := getattr(declared, name)) != default
    }


def _defaults(declared: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(declared, Declared):
        for name, field in type(declared).model_fields.items():
            yield name, field.get_default(call_default_factory=True)
    else:
        for field in fields(declared):
            yield field.name, _default(field)


def _default(field: Field[Any]) -> Any:
    return field.default if field.default_factory is MISSING else field.default_factory()


def as_data(value: Any, how: PlanWriter = PLAIN) -> Json:
    """A declared value as JSON, identical in every process."""
    match value:
        case _ if callable(value):
            inside = declared_of(value)
            return {how.name(value): as_data(inside, how)} if inside else how.name(value)
        case None | bool() | int() | float() | str():
            return value
        case date() | timedelta():
            return to_jsonable_python(value)
        case Set():
            return sorted((as_data(each, how) for each in cast(Set[Any], value)), key=json.dumps)
        case list() | tuple():
            return [as_data(each, how) for each in cast(Sequence[Any], value)]
        case Mapping():
            entries = cast(Mapping[Any, Any], value)
            return {str(key): as_data(entries[key], how) for key in sorted(entries, key=str)}
        case _:
            return _declared_data(value, how)


def beside_data(beside: Mapping[str, Any], how: PlanWriter = PLAIN) -> dict[str, Json]:
    """The declarations outside agents and steps, as data.

    Raises:
        UsageError: they are nested too deeply or contain themselves.
    """
    try:
        return {part: as_data(said, how) for part, said in beside.items() if said}
    except RecursionError as error:
        parts = " or ".join(f"`{part}`" for part, said in beside.items() if said)
        raise UsageError(
            f"{parts} is nested too deeply or contains itself. Use plain, finite data."
        ) from error


def _declared_data(value: object, how: PlanWriter) -> Json:
    if isinstance(value, (Declared, *how.kinds)):
        return data_of(value, how)
    if is_visibility(value):
        return msgspec.to_builtins(value, order="deterministic")
    return how.name(value)


def schema_digest(model: type[BaseModel], name: str) -> str:
    """The digest of what a model's JSON Schema accepts, whatever it says to readers.

    Raises:
        UsageError: the model has no JSON Schema.
    """
    return fingerprint(json.dumps(_undescribed(_schema(model, name)), sort_keys=True))


def told_digest(model: type[BaseModel], name: str) -> str:
    """The digest of a model's whole JSON Schema, descriptions included.

    Raises:
        UsageError: the model has no JSON Schema.
    """
    return fingerprint(json.dumps(_schema(model, name), sort_keys=True))


def _schema(model: type[BaseModel], name: str) -> Json:
    try:
        return model.model_json_schema(schema_generator=_SteadySchema)
    except PydanticUserError as error:
        said = str(error).splitlines()[0]
        raise UsageError(
            f"Type {name!r} has no JSON Schema: {said} Annotate that field with `WithJsonSchema`."
        ) from error


# Keywords of a schema that say something to its readers, and refuse nothing.
_REMARKS = frozenset({"title", "description", "examples", "$comment"})

# Keywords that hold schemas by name: a field may have the name of a keyword.
_NAMED = frozenset({"$defs", "properties", "patternProperties", "dependentSchemas"})

# Keywords that hold a schema or a list of them. All others hold data.
_NESTED = frozenset(
    (
        "items prefixItems contains additionalProperties propertyNames unevaluatedItems "
        "unevaluatedProperties allOf anyOf oneOf not if then else"
    ).split()
)


def _undescribed(schema: Json) -> Json:
    """A schema, or a list of some, without remarks."""
    if (several := as_array(schema)) is not None:
        return [_undescribed(each) for each in several]
    keywords = as_object(schema)
    if keywords is None:
        return schema
    return {
        keyword: _undescribed_within(keyword, value)
        for keyword, value in keywords.items()
        if keyword not in _REMARKS
    }


def _undescribed_within(keyword: str, value: Json) -> Json:
    """The value of a keyword without remarks."""
    by_name = as_object(value)
    if keyword in _NAMED and by_name is not None:
        return {name: _undescribed(each) for name, each in by_name.items()}
    return _undescribed(value) if keyword in _NESTED else value


class _SteadySchema(GenerateJsonSchema):
    """Writes default sets in a fixed order."""

    def encode_default(self, dft: Any) -> Json:
        """The default of a field as JSON."""
        return as_data(dft)


def as_text(written: Json) -> str:
    """A written plan as text."""
    return writable(json.dumps(written, indent=2, ensure_ascii=False))


def without(written: Json, *keys: str) -> None:
    """Remove texts that only inform people or models from each part of a plan."""
    by_name = as_object(written)
    parts = [*by_name.values()] if by_name is not None else as_array(written) or []
    for part in filter(None, map(as_object, parts)):
        for key in keys:
            part.pop(key, None)


def without_descriptions(plan: dict[str, Any]) -> dict[str, Any]:
    """A plan without the descriptions of its variables."""
    without((as_object(plan.get("variables")) or {}).get("definitions"), "description")
    return plan


def parts_diff(old: Mapping[str, Json], new: Mapping[str, Json]) -> str:
    """The diff of two plans, part by part; empty if they are equal."""
    return "\n".join(
        line
        for part in dict.fromkeys((*old, *new))
        for line in unified_diff(
            _lines(old.get(part)), _lines(new.get(part)), f"{part} then", f"{part} now", lineterm=""
        )
    )


def _lines(written: Json) -> list[str]:
    """A part line by line, without trailing commas, so that an added entry changes only its own
    lines."""
    return [] if written is None else [line.rstrip(",") for line in as_text(written).splitlines()]
