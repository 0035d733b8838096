"""Artifact types: pydantic models by name, registered per app."""

from collections import ChainMap
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar, cast, overload

import msgspec
from msgspec import UNSET, UnsetType
from pydantic import BaseModel, ValidationError
from pydantic_core import PydanticSerializationError

from turnloom.board.spec.indexing import checked_index
from turnloom.errors import InvalidArtifact, UnknownType, UsageError
from turnloom.kernel.values import Json, as_object, nearest, preview

M = TypeVar("M", bound=type[BaseModel])

# The class attributes for name, version and indexed fields.
_MARK = "__artifact_type__"
_VERSION = "__artifact_version__"
_INDEX = "__artifact_index__"


@overload
def artifact_type(model: M) -> M: ...
@overload
def artifact_type(
    *, name: str = "", version: int = 1, index: Sequence[str] = ()
) -> Callable[[M], M]: ...
def artifact_type(
    model: M | None = None, *, name: str = "", version: int = 1, index: Sequence[str] = ()
) -> M | Callable[[M], M]:
    """Mark a pydantic model as an artifact type, named `module.Class` unless a name is given.

    Artifacts record the version of their type, for readers of old ones. Stores index the fields of
    `index`, so that a `where` condition that one of them equals a value reads only matching
    artifacts. The mark is on the class alone; each app registers its own types.

    Raises:
        UsageError: the version is invalid, or `index` names a field that cannot be indexed.
    """

    if isinstance(version, bool) or version < 1:
        raise UsageError(f"`version` of an artifact type must be at least 1, not {version!r}.")

    def mark(model: M) -> M:
        setattr(model, _MARK, name or f"{model.__module__}.{model.__name__}")
        setattr(model, _VERSION, version)
        setattr(model, _INDEX, checked_index(model, index))
        return model

    return mark if model is None else mark(model)


def type_name(value: object) -> str | None:
    """The name of a class as an artifact type; None if it is not one."""
    return vars(value).get(_MARK) if isinstance(value, type) else None


class TypeRegistry:
    """The artifact types of an app, or of a workflow in addition to its app's."""

    def __init__(self, beside: "TypeRegistry | None" = None) -> None:
        self._models: ChainMap[str, type[BaseModel]] = (
            beside._models.new_child() if beside else ChainMap()
        )

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all types, in order of registration."""
        return tuple(self._models)

    def register(self, model: type[BaseModel]) -> str:
        """Register a model and return its name; repeating it has no effect.

        Raises:
            UsageError: it was not marked with `@artifact_type`, or another model has its name.
        """
        name = type_name(model)
        if name is None:
            called = (
                repr(model.__name__) if isinstance(cast(object, model), type) else preview(model)
            )
            raise UsageError(
                f"{called} is not an artifact type. Add `@artifact_type` to its class."
            )
        own = self._models.maps[0]
        if own.setdefault(name, model) is not model:
            raise UsageError(
                f"Two types have the name {name!r}: {_place(own[name])} and {_place(model)}. "
                "Rename one of them with `@artifact_type(name=…)`."
            )
        return name

    def version(self, name: str) -> int:
        """The version of a registered type."""
        return vars(self.model(name))[_VERSION]

    def indexed(self, name: str) -> tuple[str, ...] | UnsetType:
        """The indexed fields of a registered type; unset if there are none."""
        return vars(self.model(name))[_INDEX] or UNSET

    def resolve(self, name: str) -> str:
        """The full name of a type, given its full or simple name.

        Raises:
            UnknownType: the name is unknown or ambiguous.
        """
        if self._find(name) is not None:
            return name
        found = [known for known in self._models if known.rpartition(".")[2] == name]
        if len(found) == 1:
            return found[0]
        if found:
            raise UnknownType(
                f"Type {name!r} is ambiguous: {' or '.join(map(repr, found))}. Use a full name."
            )
        hint = nearest(name, [*self._models, *(each.rpartition(".")[2] for each in self._models)])
        known = ", ".join(self._models) or "none"
        remedy = f"Did you mean {hint!r}?" if hint else "Register it, or use one of these."
        raise UnknownType(f"Unknown type {name!r}. Known: {known}. {remedy}")

    def _find(self, name: str) -> type[BaseModel] | None:
        for known in self._models.maps:
            if name in known:
                return known[name]
        return None

    def model(self, name: str) -> type[BaseModel]:
        """The model of a type, given its full or simple name.

        Raises:
            UnknownType: the name is unknown or ambiguous.
        """
        found = self._find(name)
        return self._models[self.resolve(name)] if found is None else found

    def write(self, value: BaseModel) -> tuple[str, dict[str, Json]]:
        """The type name and the payload of a value; the payload must survive a round trip.

        Raises:
            UnknownType: its type is not registered.
            InvalidArtifact: a round trip through JSON changes it.
        """
        name = type_name(type(value)) or ""
        if self._find(name) is not type(value):
            raise UnknownType(
                f"Type {type(value).__name__!r} is not registered in this app. Register it first."
            )
        return name, self._checked(name, value)

    def check(self, name: str, payload: Json) -> dict[str, Json]:
        """A validated payload: defaults filled in, values in their JSON form.

        Raises:
            UnknownType: the type is unknown.
            InvalidArtifact: the payload does not match the type.
        """
        name = self.resolve(name)
        return self._checked(name, self.read(name, payload))

    def read(self, name: str, payload: Json) -> BaseModel:
        """The value of a payload.

        Raises:
            UnknownType: the type is unknown.
            InvalidArtifact: the payload does not match the type.
        """
        name = self.resolve(name)
        try:
            return self._models[name].model_validate_json(msgspec.json.encode(payload))
        except (ValidationError, TypeError, ValueError, RecursionError) as error:
            raise InvalidArtifact(
                f"Payload {preview(payload)} is not a valid {name!r}: {_said(error)}. Correct it."
            ) from error

    def _checked(self, name: str, value: BaseModel) -> dict[str, Json]:
        try:
            text = value.model_dump_json(by_alias=True, round_trip=True)
            again = type(value).model_validate_json(text)
            same = again == value or _is_same(again, value)
        except (PydanticSerializationError, ValidationError) as error:
            raise InvalidArtifact(
                f"A value of type {name!r} does not survive a JSON round trip: {_said(error)}. In "
                "its `model_config`, set `ser_json_bytes` and `val_json_bytes` to 'base64' for "
                "binary data, and `ser_json_inf_nan` to 'strings' for NaN and infinity."
            ) from error
        payload = as_object(msgspec.json.decode(text))
        if not same or payload is None:
            raise InvalidArtifact(
                f"A JSON round trip changes a value of type {name!r}. "
                "Make its validators reverse its serializers."
            )
        return payload


def _is_same(one: Any, other: Any) -> bool:
    """Whether two values are the same although not equal: NaN equals nothing, and private
    attributes may differ."""
    if isinstance(one, BaseModel) and isinstance(other, BaseModel):
        return type(one) is type(other) and _is_same(dict(one), dict(other))
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        these, those = cast(Mapping[Any, Any], one), cast(Mapping[Any, Any], other)
        return these.keys() == those.keys() and all(_is_same(these[k], those[k]) for k in these)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        some, more = cast(Sequence[Any], one), cast(Sequence[Any], other)
        return len(some) == len(more) and all(map(_is_same, some, more))
    return bool(one == other) or (one != one and other != other)


def _place(model: type[BaseModel]) -> str:
    return f"{model.__module__}.{model.__qualname__}"


def _said(error: Exception) -> str:
    if not isinstance(error, ValidationError):
        return str(error).rstrip(".")
    problems = error.errors(include_url=False, include_context=False, include_input=False)
    return "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in problems)
