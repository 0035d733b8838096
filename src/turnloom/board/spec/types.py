"""The types of artifacts: pydantic models by name, as one app knows them."""

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

# Where a class keeps the name that it was given, and its version.
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
    """Mark a pydantic model as a type of artifacts, called `module.Class` unless a name is given.

    Artifacts have the version of the type that they were written as, for those who read old ones.
    Stores index the fields of `index`, so that a filter whose `where` says what one of them equals
    reads only the artifacts with that value.
    The mark is on the class alone: which types there are is each app's own affair.

    Raises:
        UsageError: the version is none, or `index` names a field that cannot be indexed.
    """

    if isinstance(version, bool) or version < 1:
        raise UsageError(f"A type of artifacts has a version from 1 on, not {version!r}.")

    def mark(model: M) -> M:
        setattr(model, _MARK, name or f"{model.__module__}.{model.__name__}")
        setattr(model, _VERSION, version)
        setattr(model, _INDEX, checked_index(model, index))
        return model

    return mark if model is None else mark(model)


def type_name(value: object) -> str | None:
    """What a class is called as a type of artifacts; nothing if it is none."""
    return vars(value).get(_MARK) if isinstance(value, type) else None


class TypeRegistry:
    """The types that one app knows; or a workflow of it, beside what the app knows by then."""

    def __init__(self, beside: "TypeRegistry | None" = None) -> None:
        self._models: ChainMap[str, type[BaseModel]] = (
            beside._models.new_child() if beside else ChainMap()
        )

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all types, in the order in which they were registered."""
        return tuple(self._models)

    def register(self, model: type[BaseModel]) -> str:
        """Know a model from now on, and give its name; a second time changes nothing.

        Raises:
            UsageError: it was not marked with `@artifact_type`, or another model has its name.
        """
        name = type_name(model)
        if name is None:
            called = (
                repr(model.__name__) if isinstance(cast(object, model), type) else preview(model)
            )
            raise UsageError(
                f"{called} is no type of artifacts. Put `@artifact_type` above its class."
            )
        own = self._models.maps[0]
        if own.setdefault(name, model) is not model:
            raise UsageError(
                f"Two types are called {name!r}: {_place(own[name])} and {_place(model)}. "
                "Give one of them another name with `@artifact_type(name=…)`."
            )
        return name

    def version(self, name: str) -> int:
        """The version of a type that is known."""
        return vars(self.model(name))[_VERSION]

    def indexed(self, name: str) -> tuple[str, ...] | UnsetType:
        """The fields that stores index of a type that is known; unset if there are none."""
        return vars(self.model(name))[_INDEX] or UNSET

    def resolve(self, name: str) -> str:
        """The full name of the type that a full or simple name stands for.

        Raises:
            UnknownType: it stands for none, or for several.
        """
        if self._find(name) is not None:
            return name
        found = [known for known in self._models if known.rpartition(".")[2] == name]
        if len(found) == 1:
            return found[0]
        if found:
            raise UnknownType(
                f"{name!r} may be {' or '.join(map(repr, found))}. Write the full name."
            )
        hint = nearest(name, [*self._models, *(each.rpartition(".")[2] for each in self._models)])
        known = ", ".join(self._models) or "none"
        remedy = f"Did you mean {hint!r}?" if hint else "Register it, or use one of these."
        raise UnknownType(f"There is no type {name!r}. Known: {known}. {remedy}")

    def _find(self, name: str) -> type[BaseModel] | None:
        for known in self._models.maps:
            if name in known:
                return known[name]
        return None

    def model(self, name: str) -> type[BaseModel]:
        """The model that a full or simple name stands for.

        Raises:
            UnknownType: it stands for none, or for several.
        """
        return self._models[self.resolve(name)]

    def write(self, value: BaseModel) -> tuple[str, dict[str, Json]]:
        """The name of a value's type, and the value as a payload that gives the same value back.

        Raises:
            UnknownType: its type is not known here.
            InvalidArtifact: it would not come back from JSON.
        """
        name = type_name(type(value)) or ""
        if self._find(name) is not type(value):
            raise UnknownType(
                f"{type(value).__name__!r} is not a type of this app. Register it first."
            )
        return name, self._checked(name, value)

    def check(self, name: str, payload: Json) -> dict[str, Json]:
        """A payload as its type has it: defaults filled in, values in their JSON form.

        Raises:
            UnknownType: there is no such type.
            InvalidArtifact: the type refuses the payload.
        """
        name = self.resolve(name)
        return self._checked(name, self.read(name, payload))

    def read(self, name: str, payload: Json) -> BaseModel:
        """The value that a payload holds.

        Raises:
            UnknownType: there is no such type.
            InvalidArtifact: the type refuses the payload.
        """
        name = self.resolve(name)
        try:
            return self._models[name].model_validate_json(msgspec.json.encode(payload))
        except (ValidationError, TypeError, ValueError, RecursionError) as error:
            raise InvalidArtifact(
                f"{preview(payload)} is no {name!r}: {_said(error)}. Correct the payload."
            ) from error

    def _checked(self, name: str, value: BaseModel) -> dict[str, Json]:
        try:
            text = value.model_dump_json(by_alias=True, round_trip=True)
            again = type(value).model_validate_json(text)
            same = again == value or _is_same(again, value)
        except (PydanticSerializationError, ValidationError) as error:
            raise InvalidArtifact(
                f"A value of type {name!r} does not come back from JSON: {_said(error)}. For bytes "
                "that are no text, let its `model_config` say 'base64' in `ser_json_bytes` and "
                "`val_json_bytes`; for NaN and infinity 'strings' in `ser_json_inf_nan`."
            ) from error
        payload = as_object(msgspec.json.decode(text))
        if not same or payload is None:
            raise InvalidArtifact(
                f"A value of type {name!r} comes back from JSON as another one. "
                "Let its serializers and validators undo each other."
            )
        return payload


def _is_same(one: Any, other: Any) -> bool:
    """Whether two values are the same though they are not equal: NaN is equal to nothing, and what
    is private may differ."""
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
