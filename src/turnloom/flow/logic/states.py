"""The state of a flow: reading changes, applying them, and copying it for a step."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from functools import cached_property
from operator import is_
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, cast, get_args, get_origin
from uuid import UUID

import msgspec
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import PydanticSerializationError

from turnloom.errors import InvalidUpdate
from turnloom.flow.spec.steps import Update, append, merge
from turnloom.kernel.values import Json, error_text, nearest, preview

# The reducers without user code.
REPLACED, APPENDED, MERGED = "replaced", "appended", "merged"


# Settings of a model that do not affect its values, and methods with which a model can look at
# several of them.
_SETTINGS = frozenset({"frozen", "title", "use_attribute_docstrings", "json_schema_extra"})
_HOOKS = ("__init__", "__new__", "model_post_init", "__get_pydantic_core_schema__")


class StateChange(NamedTuple):
    """The fields that a step changes, as JSON, and its confidence."""

    fields: dict[str, Json]
    confidence: float | None = None


class StateModel:
    """The model of a flow's state: reads and writes states, and applies changes."""

    def __init__(self, model: type[BaseModel]) -> None:
        self.model = model
        self.reducers = {name: reducer_of(field) for name, field in model.model_fields.items()}

    def dump(self, state: BaseModel) -> dict[str, Json]:
        """A state as JSON, from which the same state can be read.

        Raises:
            InvalidUpdate: the state is of another model, or does not survive JSON.
        """
        if not isinstance(state, self.model):
            raise InvalidUpdate(
                f"Expected a state of type {self.model.__name__}, got {preview(state)}."
            )
        try:
            written: dict[str, Json] = state.model_dump(mode="json", by_alias=False)
            json.dumps(written, allow_nan=False)  # a store would turn NaN into null
            back = self.load(written)
        except (PydanticSerializationError, ValidationError, ValueError) as error:
            raise InvalidUpdate(
                f"This {self.model.__name__} does not survive JSON: {error_text(error)}"
            ) from error
        if back != state:
            raise InvalidUpdate(
                f"This {self.model.__name__} changes in JSON: it comes back as {preview(back)}. "
                "Use fields that JSON can represent."
            )
        return written

    def load(self, written: Mapping[str, Json]) -> Any:
        """Read a new state from JSON; it shares nothing with other states."""
        return self.model.model_validate_json(msgspec.json.encode(written), by_name=True)

    @cached_property
    def is_piecewise(self) -> bool:
        """Whether a state is valid if each field is: no code and no setting of the model involves
        more than one field."""
        model = self.model
        decorators = model.__pydantic_decorators__
        has_code = (
            decorators.validators
            or decorators.field_validators
            or decorators.root_validators
            or decorators.model_validators
            or model.__private_attributes__
            or any(name in vars(each) for each in model.__mro__ for name in _HOOKS if _own(each))
        )
        has_alias = any(
            field.alias is not None or field.validation_alias is not None
            for field in model.model_fields.values()
        )
        return not (has_code or has_alias) and model.model_config.keys() <= _SETTINGS

    def load_field(self, name: str, written: Json) -> Any:
        """Read a new value of a field from JSON.

        Raises:
            ValidationError: the value is invalid.
        """
        return self._adapters[name].validate_json(msgspec.json.encode(written))

    def read(self, given: Any, state: Any, shown: Callable[[], Any]) -> StateChange:
        """Read the result of a step as a change of fields; `state` is what the step got, and
        `shown` makes it again, unchanged.

        Raises:
            InvalidUpdate: it is not a change, or has invalid fields or values.
        """
        if given is None:
            return StateChange({})
        if isinstance(given, Update):
            update = cast(Update[Any], given)
            fields = self._fields(self._changed(update.changes, state, shown))
            return StateChange(fields, _confidence(update.confidence))
        if isinstance(given, Mapping):
            changes = cast(Mapping[Any, Any], given)
            return StateChange(self._fields(self._changed(changes, state, shown)))
        if isinstance(given, BaseModel):
            raise InvalidUpdate(
                f"A step must return its changes, not a whole {type(given).__name__}. "
                "Return a dict, or `Update(…)`, with the fields that change."
            )
        raise InvalidUpdate(f"A step must return a dict, an Update or None, not {preview(given)}.")

    def values(self, update: Mapping[str, Json]) -> dict[str, object]:
        """The values of a change in the types of their fields; those of removed fields as JSON."""
        known = self._adapters
        return {
            name: _meant(known[name], value) if name in known else value
            for name, value in update.items()
        }

    def _changed(
        self, changes: Mapping[Any, Any], state: Any, shown: Callable[[], Any]
    ) -> Mapping[Any, Any]:
        """Changes without the lists of the state that a step returned as they were, so that they
        are not added again.

        Raises:
            InvalidUpdate: such a list was changed in place.
        """
        back = {name for name, value in changes.items() if self._is_own(name, value, state)}
        before = shown() if back else None
        for name in sorted(back):
            if getattr(before, name) != changes[name]:
                raise InvalidUpdate(
                    f"The step changed {self.model.__name__}.{name} in place and returned it. "
                    f"Leave the state as it is, and return a new list: {{{name!r}: […]}}."
                )
        return {name: value for name, value in changes.items() if name not in back}

    def _is_own(self, name: Any, value: Any, state: Any) -> bool:
        """Whether a value is the state's own list, which its reducer would combine with itself."""
        if not isinstance(value, list) or self.reducers.get(name, REPLACED) == REPLACED:
            return False
        return value is getattr(state, name)

    def _fields(self, changes: Mapping[Any, Any]) -> dict[str, Json]:
        return {name: self._field(name, value) for name, value in changes.items()}

    def _field(self, name: Any, value: Any) -> Json:
        if name not in self.reducers:
            near = nearest(str(name), list(self.reducers))
            remedy = f"Did you mean {near!r}?" if near else f"Fields: {', '.join(self.reducers)}."
            raise InvalidUpdate(f"{self.model.__name__} has no field {name!r}. {remedy}")
        writer = _ANYTHING if callable(self.reducers[name]) else self._writers[name]
        try:
            (written,) = writer.dump_python(writer.validate_python((value,)), mode="json")
            # A store would turn NaN into null, and cannot hold a lone surrogate.
            json.dumps(written, allow_nan=False, ensure_ascii=False).encode()
            return written
        except (PydanticSerializationError, ValidationError, ValueError) as error:
            raise InvalidUpdate(
                f"{preview(value)} is not valid for {self.model.__name__}.{name}: "
                f"{error_text(error)}"
            ) from error

    @cached_property
    def _writers(self) -> dict[str, TypeAdapter[Any]]:
        return {name: _writer(_type(field)) for name, field in self.model.model_fields.items()}

    @cached_property
    def _adapters(self) -> dict[str, TypeAdapter[Any]]:
        return {name: TypeAdapter(_type(field)) for name, field in self.model.model_fields.items()}

    def reduce(
        self, state: Mapping[str, Json], deltas: Sequence[Mapping[str, Json]]
    ) -> dict[str, Json]:
        """The fields whose reducers are user code, after these changes.

        Raises:
            InvalidUpdate: the new state is invalid.
        """
        now = {**state}
        reduced: dict[str, Json] = {}
        for delta in deltas:
            own = {name: self._reduced(name, now, delta) for name in delta if self._is_code(name)}
            reduced |= own
            self.apply(now, delta, own)
        try:
            self._check(now, {name for delta in deltas for name in delta})
        except ValueError as error:
            raise InvalidUpdate(f"The step makes the state invalid: {error_text(error)}") from error
        return reduced

    def _check(self, now: Mapping[str, Json], changed: Iterable[str]) -> None:
        """Validate a state after some fields changed: all of it if the model needs that, else these
        fields.

        Raises:
            ValidationError: the state is invalid.
        """
        if not self.is_piecewise:
            self.load(now)
            return
        for name in changed:
            if name not in self.growing:
                self.load_field(name, now[name])

    @cached_property
    def growing(self) -> frozenset[str]:
        """The fields that only grow, by changes that are already validated; a field with limits on
        the whole is validated each time."""
        fields = self.model.model_fields
        words = (APPENDED, MERGED)
        return frozenset(
            name
            for name, how in self.reducers.items()
            if how in words and len(fields[name].metadata) == 1
        )

    def _is_code(self, name: str) -> bool:
        return callable(self.reducers[name])

    def _reduced(self, name: str, now: Mapping[str, Json], delta: Mapping[str, Json]) -> Json:
        reducer, field = self.reducers[name], self._adapters[name]
        assert callable(reducer)
        try:
            result = reducer(field.validate_python(now[name]), _meant(field, delta[name]))
            return field.dump_python(field.validate_python(result), mode="json")
        except Exception as error:
            raise InvalidUpdate(f"The reducer of {name!r} failed: {error_text(error)}") from error

    def apply(
        self, state: dict[str, Json], delta: Mapping[str, Json], reduced: Mapping[str, Json]
    ) -> None:
        """Apply a change to a state."""
        apply_change(self.reducers, state, delta, reduced)


def apply_change(
    reducers: Mapping[str, object],
    state: dict[str, Json],
    delta: Mapping[str, Json],
    reduced: Mapping[str, Json],
) -> None:
    """Apply a change to a state whose fields have these reducers."""
    given: Mapping[str, Any] = delta
    for name, value in given.items():
        how = reducers.get(name, REPLACED)
        before: Any = state.get(name)
        if name in reduced:
            state[name] = reduced[name]
        elif how == APPENDED:
            state[name] = append(before or [], value)
        elif how == MERGED:
            state[name] = merge(before or {}, value)
        else:
            state[name] = value


def is_current(states: StateModel, written: Mapping[str, Json]) -> bool:
    """Whether the current model has every field of a state, and accepts its values."""
    if not written.keys() <= states.reducers.keys():
        return False
    try:
        states.load(written)
    except ValidationError:
        return False
    return True


def _own(kind: type) -> bool:
    """Whether a class is not part of pydantic or Python."""
    return kind.__module__.partition(".")[0] not in ("pydantic", "builtins", "typing", "abc")


def _writer(kind: Any) -> TypeAdapter[Any]:
    """A writer of one value of a type, inside a tuple: only there does pydantic write NaN as it is,
    so that it can be refused, and not as null."""
    one: Any = tuple
    return TypeAdapter(one[kind], config=ConfigDict(ser_json_inf_nan="constants"))


_ANYTHING = _writer(Any)


def _type(field: FieldInfo) -> Any:
    """The type of a field and its limits: outside a model, pydantic warns about anything else, such
    as an alias."""
    annotated: Any = Annotated
    return annotated[field.annotation, Field(discriminator=field.discriminator), *field.metadata]


def _meant(field: TypeAdapter[Any], given: Json) -> Any:
    """The argument of a reducer: a value of the field's type if it is valid, else plain JSON."""
    try:
        return field.validate_json(json.dumps(given), strict=True)
    except ValidationError:
        return given


def reducer_of(field: FieldInfo) -> str | Callable[[Any, Any], Any]:
    """The reducer of a field: a word, or user code."""
    found = reducers_in(field.metadata)
    match found:
        case []:
            return REPLACED
        case [first, *_] if first is append:
            return APPENDED
        case [first, *_] if first is merge:
            return MERGED
        case _:
            return found[0]


def reducers_in(metadata: Iterable[Any]) -> list[Callable[[Any, Any], Any]]:
    """The reducers in an annotation."""
    return [each for each in metadata if callable(each) and not isinstance(each, type)]


def is_kind(annotation: Any, kind: type) -> bool:
    """Whether an annotation is a kind of collection, as `list[int]` is a `list`."""
    return (get_origin(annotation) or annotation) is kind


def _confidence(given: Any) -> float | None:
    if given is None:
        return None
    is_number = isinstance(given, int | float) and not isinstance(given, bool)
    if not is_number or not 0 <= given <= 1:
        raise InvalidUpdate(f"`confidence` must be a number from 0 to 1, not {given!r}.")
    return float(given)


# Immutable types, whose values copies of a state may share.
_FIXED = (str, int, float, bool, bytes, NoneType, date, datetime, time, timedelta, Decimal, UUID)


class StateCopies:
    """Copies of one run's states. The last one is kept: a field is read from JSON again only if it
    changed, or is mutable and cannot be copied simply."""

    def __init__(self, states: StateModel) -> None:
        self._states = states
        self._read: dict[str, Json] = {}
        self._last: Any = None

    def load(self, written: Mapping[str, Json]) -> Any:
        """A new state from JSON; it shares nothing mutable with other states."""
        if not self._states.is_piecewise:
            return self._states.load(written)
        if self._last is None or written.keys() != self._states.reducers.keys():
            return self._load_whole(written)
        changed = [name for name, value in written.items() if value is not self._read[name]]
        if changed:
            self._last = copy(self._last)
            for name in changed:
                vars(self._last)[name] = self._changed(name, written[name])
                self._read[name] = written[name]
        return self._copied(written)

    def _changed(self, name: str, now: Any) -> Any:
        """A changed field; of a list that only grew, only the new items are read."""
        before: Any = self._read[name]
        if name in self._states.growing and before and len(before) <= len(now or ()):
            if self._states.reducers[name] == APPENDED and all(map(is_, before, now)):
                new = self._states.load_field(name, now[len(before) :])
                return [*vars(self._last)[name], *new]
        return self._states.load_field(name, now)

    def _load_whole(self, written: Mapping[str, Json]) -> Any:
        self._last = self._states.load(written)
        self._read = {name: written.get(name) for name in self._states.reducers}
        return self._copied(written)

    def _copied(self, written: Mapping[str, Json]) -> Any:
        made = copy(self._last)
        for name, copier in self._copiers.items():
            if copier is not None:
                vars(made)[name] = copier(vars(made)[name])
            elif name in written:
                vars(made)[name] = self._states.load_field(name, written[name])
        return made

    @cached_property
    def _copiers(self) -> Mapping[str, Callable[[Any], Any] | None]:
        """The copier of each mutable field; None if it must be read again."""
        fields = self._states.model.model_fields
        return {
            name: _copier(field.annotation)
            for name, field in fields.items()
            if not _is_fixed(field.annotation)
        }


def _copier(annotation: Any) -> Callable[[Any], Any] | None:
    """A function that copies a collection and its mutable parts, if possible."""
    kind, parts = get_origin(annotation), get_args(annotation)
    if kind not in (list, dict, set) or not parts:
        return None
    if all(map(_is_fixed, parts)):
        return kind
    inner = _copier(parts[-1])
    if inner is None:
        return None
    if kind is list:
        return lambda found: [inner(each) for each in found]
    return lambda found: {key: inner(each) for key, each in found.items()}


def _is_fixed(annotation: Any) -> bool:
    """Whether the values of a type are immutable."""
    if isinstance(annotation, type) and get_origin(annotation) is None:
        plain = cast(type[object], annotation)
        return plain in _FIXED or issubclass(plain, Enum) or _is_fixed_model(plain)
    kind, parts = get_origin(annotation), get_args(annotation)
    if kind is Literal:
        return True
    if kind is Annotated:
        return _is_fixed(parts[0])
    if kind in (Union, UnionType, tuple, frozenset):
        return all(each is Ellipsis or _is_fixed(each) for each in parts)
    return False


def _is_fixed_model(kind: type[object]) -> bool:
    """Whether a type is a frozen model with immutable fields."""
    if not issubclass(kind, BaseModel) or not kind.model_config.get("frozen"):
        return False
    has_more = kind.model_config.get("extra") == "allow" or kind.__private_attributes__
    return not has_more and all(_is_fixed(each.annotation) for each in kind.model_fields.values())
