"""Checks of a flow's state model and its reducers."""

from collections.abc import Iterator, Mapping
from dataclasses import is_dataclass
from inspect import iscoroutinefunction
from types import NoneType, UnionType
from typing import Annotated, Any, Union, cast, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import SchemaSerializer, SchemaValidator, core_schema

from turnloom.agents.logic.plans import schema_digest
from turnloom.errors import Diagnostic, UsageError
from turnloom.flow.logic.checks.frozen import loose_models
from turnloom.flow.logic.checks.problems import problem
from turnloom.flow.logic.states import APPENDED, MERGED, is_kind, reducer_of, reducers_in
from turnloom.flow.spec.nodes import Site
from turnloom.kernel.code import fits
from turnloom.kernel.values import preview


def lost_key(model: type[BaseModel]) -> tuple[Any] | None:
    """A key of a mapping in a model that does not survive JSON, if one is known in advance: of an
    enum, of a `Literal`, or null."""
    try:
        model.model_json_schema(schema_generator=_KeyVisitor)
    except _Lost as lost:
        return (lost.key,)
    return None


class _Lost(Exception):
    """A key does not survive JSON."""

    def __init__(self, key: Any) -> None:
        self.key = key


class _KeyVisitor(GenerateJsonSchema):
    """Visits every mapping of a model, and checks its keys."""

    def dict_schema(self, schema: core_schema.DictSchema) -> JsonSchemaValue:
        """Check the keys of a mapping.

        Raises:
            _Lost: a key does not survive JSON.
        """
        keys = schema.get("keys_schema")
        for key in _known(keys) if keys else ():
            if not _comes_back(core_schema.dict_schema(keys), key):
                raise _Lost(key)
        return super().dict_schema(schema)


def _known(keys: core_schema.CoreSchema) -> Iterator[Any]:
    """The possible keys, if they are known."""
    match keys:
        case {"type": "enum", "members": [*members]}:
            yield from members
        case {"type": "literal", "expected": [*expected]}:
            yield from expected
        case {"type": "nullable", "schema": inner}:
            yield None
            yield from _known(cast(core_schema.CoreSchema, inner))
        case {"type": "union", "choices": [*choices]}:
            for each in cast(list[core_schema.CoreSchema], choices):
                yield from _known(each)
        case _:
            return


def _comes_back(mapping: core_schema.DictSchema, key: Any) -> bool:
    whole = {key: None}
    try:
        text = SchemaSerializer(mapping).to_json(whole)
        return SchemaValidator(mapping).validate_json(text) == whole
    except ValueError:
        return False


def as_model(state: Any) -> type[BaseModel] | None:
    """The declared state, if it is a model."""
    return state if isinstance(state, type) and issubclass(state, BaseModel) else None


def check_model(state: Any, site: Site) -> Iterator[Diagnostic]:
    """Check the model of the state."""
    model = as_model(state)
    if model is None:
        message = f"The state is {preview(state)}, expected a pydantic model."
        yield problem(site, "W116", message, "Declare it with `class State(BaseModel)`.")
        return
    try:
        schema_digest(model, model.__name__)
    except UsageError as error:
        message, _, remedy = str(error).partition(". ")
        yield problem(site, "W116", f"{message}.", remedy or "Use fields that JSON can represent.")
    else:
        yield from _check_keys(model, site)
        yield from _check_inside(model, site)
    if not model.model_config.get("frozen"):
        message = f"{model.__name__} is not frozen. Assignments to it in a step would be lost."
        remedy = "Set `model_config = ConfigDict(frozen=True)`, and return the changes."
        yield problem(site, "W117", message, remedy)
    for name, field in model.model_fields.items():
        yield from _check_reducer(f"{model.__name__}.{name}", field, site)


def check_migrate(migrate: Any, site: Site) -> Iterator[Diagnostic]:
    """Check the function that migrates states of an earlier model."""
    if migrate is None:
        return
    if not callable(migrate) or not fits(migrate, 1) or iscoroutinefunction(migrate):
        message = f"`migrate` is {preview(migrate)}."
        remedy = "Give a plain function of the fields of a state: `lambda old: {…}`."
        yield problem(site, "W126", message, remedy)


def _check_keys(model: type[BaseModel], site: Site) -> Iterator[Diagnostic]:
    """Check that mappings in the state survive JSON."""
    lost = lost_key(model)
    if lost is not None:
        what = f"A mapping in {model.__name__} can have the key {preview(*lost)}"
        message = f"{what}, which does not survive JSON: keys are strings there."
        yield problem(site, "W116", message, "Use keys with string values, or an `IntEnum`.")


def _check_inside(model: type[BaseModel], site: Site) -> Iterator[Diagnostic]:
    """Check that the models inside the state are frozen."""
    for kind in loose_models(model):
        name = kind.__name__
        message = f"{name}, inside {model.__name__}, is not frozen. "
        message += "Assignments to it in a step would be lost."
        if is_dataclass(kind):
            remedy = "Declare it with `@dataclass(frozen=True)`, and return a changed copy: "
            remedy += "`replace(…)`."
        else:
            remedy = "Set `model_config = ConfigDict(frozen=True)` in it, or in a subclass of it "
            remedy += "for the state, and return a changed copy: `….model_copy(update={…})`."
        yield problem(site, "W117", message, remedy)


def _check_reducer(name: str, field: FieldInfo, site: Site) -> Iterator[Diagnostic]:
    """Check the reducer of a field."""
    if len(reducers_in(field.metadata)) > 1:
        message = f"{name} has several reducers, but only one counts."
        yield problem(site, "W118", message, "Keep one of them.")
    if _inner(field.annotation):
        message = f"{name} has a reducer inside its type, where it has no effect."
        yield problem(site, "W118", message, "Write `Annotated[…, reducer]` around the whole type.")
    reducer = reducer_of(field)
    if callable(reducer):
        if not fits(reducer, 2):
            message = f"The reducer of {name}, {preview(reducer)}, does not take two values."
            remedy = "Give it two parameters: the current value and the new one."
            yield problem(site, "W118", message, remedy)
        return
    wanted = {APPENDED: ("append", list), MERGED: ("merge", dict)}.get(reducer)
    if wanted is not None and not _is_all(field.annotation, wanted[1]):
        message = f"{name} is a {_written(field.annotation)}, which `{wanted[0]}` does not reduce."
        remedy = f"Make it a {wanted[1].__name__}, or use another reducer."
        yield problem(site, "W118", message, remedy)


def _parts(annotation: Any) -> list[Any]:
    """The parts of a union type except None."""
    is_union = get_origin(annotation) in (Union, UnionType)
    parts = get_args(annotation) if is_union else (annotation,)
    return [each for each in parts if each is not NoneType]


def _inner(annotation: Any) -> bool:
    """Whether a part of a type has a reducer."""
    return any(
        reducers_in(get_args(each)[1:])
        for each in _parts(annotation)
        if get_origin(each) is Annotated
    )


def _is_all(annotation: Any, kind: type) -> bool:
    kinds = (dict, Mapping) if kind is dict else (kind,)
    return all(any(is_kind(each, one) for one in kinds) for each in _parts(annotation))


def _written(annotation: Any) -> str:
    return annotation.__name__ if isinstance(annotation, type) else str(annotation)
