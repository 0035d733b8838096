"""The state of a flow: how changes are read, and what they make of it."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Annotated, Any, NamedTuple, cast, get_origin

import msgspec
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import PydanticSerializationError

from turnloom.errors import InvalidUpdate
from turnloom.flow.spec.states import Update, append, merge
from turnloom.kernel.values import Json, nearest, preview, said

# How a change of a field becomes part of the state, where no code of the program says it.
REPLACED, APPENDED, MERGED = "replaced", "appended", "merged"


# Settings of a model that say nothing about its values, and methods by which one has code of its
# own that looks at them.
_SETTINGS = frozenset({"frozen", "title", "use_attribute_docstrings", "json_schema_extra"})
_HOOKS = ("__init__", "__new__", "model_post_init", "__get_pydantic_core_schema__")


class Change(NamedTuple):
    """What a step changes, as JSON, and how sure it is."""

    fields: dict[str, Json]
    confidence: float | None = None


class StateModel:
    """A model of states: reads and writes states, and what steps change in them."""

    def __init__(self, model: type[BaseModel]) -> None:
        self.model = model
        self.reducers = {name: reducer_of(field) for name, field in model.model_fields.items()}

    def dump(self, state: BaseModel) -> dict[str, Json]:
        """A state as JSON, from which the same state can be read.

        Raises:
            InvalidUpdate: it is of another model, or does not come back as it is.
        """
        if not isinstance(state, self.model):
            raise InvalidUpdate(
                f"The flow's state is a {self.model.__name__}, not {preview(state)}."
            )
        try:
            written: dict[str, Json] = state.model_dump(mode="json", by_alias=False)
            json.dumps(written, allow_nan=False)  # a store would give back null
            back = self.load(written)
        except (PydanticSerializationError, ValidationError, ValueError) as error:
            raise InvalidUpdate(
                f"A {self.model.__name__} does not come back from JSON: {said(error)}"
            ) from error
        if back != state:
            raise InvalidUpdate(
                f"A {self.model.__name__} comes back from JSON as another one: {preview(back)}. "
                "Use fields that JSON can say."
            )
        return written

    def load(self, written: Mapping[str, Json]) -> Any:
        """The state that JSON says, made anew: nobody else has a hold on it."""
        return self.model.model_validate_json(msgspec.json.encode(written), by_name=True)

    @cached_property
    def is_piecewise(self) -> bool:
        """Whether a state is right if each of its fields is: no code and no setting of the model
        has a say in more than one of them."""
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
        """The value of a field that JSON says, made anew.

        Raises:
            ValidationError: the field cannot have it.
        """
        return self._adapters[name].validate_json(msgspec.json.encode(written))

    def read(self, given: Any, state: Any, shown: Callable[[], Any]) -> Change:
        """What a step gave that has had a state, as the change of fields that it is; `shown` makes
        that state once more, as it was shown.

        Raises:
            InvalidUpdate: it is none, or has fields or values that the state cannot have.
        """
        if given is None:
            return Change({})
        if isinstance(given, Update):
            update = cast(Update[Any], given)
            fields = self._fields(self._changed(update.changes, state, shown))
            return Change(fields, _confidence(update.confidence))
        if isinstance(given, Mapping):
            changes = cast(Mapping[Any, Any], given)
            return Change(self._fields(self._changed(changes, state, shown)))
        if isinstance(given, BaseModel):
            raise InvalidUpdate(
                f"A step gives what it changes, not a whole {type(given).__name__}. "
                "Give a dict, or `Update(…)`, with the fields that change."
            )
        raise InvalidUpdate(f"A step gives a dict, an Update or nothing, not {preview(given)}.")

    def values(self, update: Mapping[str, Json]) -> dict[str, object]:
        """The values of a change, as the types of its fields say; of one that is gone, as JSON."""
        known = self._adapters
        return {
            name: _meant(known[name], value) if name in known else value
            for name, value in update.items()
        }

    def _changed(
        self, changes: Mapping[Any, Any], state: Any, shown: Callable[[], Any]
    ) -> Mapping[Any, Any]:
        """Changes without the lists that a step was shown and gave back as they were: what is there
        already is not to come once more.

        Raises:
            InvalidUpdate: such a list was changed in place.
        """
        back = {name for name, value in changes.items() if self._is_own(name, value, state)}
        before = shown() if back else None
        for name in sorted(back):
            if getattr(before, name) != changes[name]:
                raise InvalidUpdate(
                    f"The step changed {self.model.__name__}.{name} in place and gave it back. "
                    f"Leave the state as it is, and give a list of its own: {{{name!r}: […]}}."
                )
        return {name: value for name, value in changes.items() if name not in back}

    def _is_own(self, name: Any, value: Any, state: Any) -> bool:
        """Whether a value is the very list of a state that its reducer would reduce with itself."""
        if not isinstance(value, list) or self.reducers.get(name, REPLACED) == REPLACED:
            return False
        return value is getattr(state, name)

    def _fields(self, changes: Mapping[Any, Any]) -> dict[str, Json]:
        return {name: self._field(name, value) for name, value in changes.items()}

    def _field(self, name: Any, value: Any) -> Json:
        if name not in self.reducers:
            near = nearest(str(name), list(self.reducers))
            remedy = f"Did you mean {near!r}?" if near else f"It has: {', '.join(self.reducers)}."
            raise InvalidUpdate(f"{self.model.__name__} has no field {name!r}. {remedy}")
        writer = _ANYTHING if callable(self.reducers[name]) else self._writers[name]
        try:
            (written,) = writer.dump_python(writer.validate_python((value,)), mode="json")
            # A store would give back null for what is no number, and nothing for half a character.
            json.dumps(written, allow_nan=False, ensure_ascii=False).encode()
            return written
        except (PydanticSerializationError, ValidationError, ValueError) as error:
            raise InvalidUpdate(
                f"{preview(value)} cannot be {self.model.__name__}.{name}: {said(error)}"
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
        """The fields of the state whose reducers are code, as they are after these changes.

        Raises:
            InvalidUpdate: the state cannot be what comes of it.
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
            raise InvalidUpdate(
                f"The state cannot be what the step makes of it: {said(error)}"
            ) from error
        return reduced

    def _check(self, now: Mapping[str, Json], changed: Iterable[str]) -> None:
        """See that a state is right of which some fields changed: the whole of it, if code of the
        model looks at that, else these fields.

        Raises:
            ValidationError: it is not.
        """
        if not self.is_piecewise:
            self.load(now)
            return
        for name in changed:
            if name not in self.growing:
                self.load_field(name, now[name])

    @cached_property
    def growing(self) -> frozenset[str]:
        """The fields to which changes, which are checked when they are read, are only added; what
        limits one of them as a whole is looked at each time."""
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
            raise InvalidUpdate(f"The reducer of {name!r} failed: {said(error)}") from error

    def apply(
        self, state: dict[str, Json], delta: Mapping[str, Json], reduced: Mapping[str, Json]
    ) -> None:
        """Let a change be part of a state."""
        apply_change(self.reducers, state, delta, reduced)


def apply_change(
    reducers: Mapping[str, object],
    state: dict[str, Json],
    delta: Mapping[str, Json],
    reduced: Mapping[str, Json],
) -> None:
    """Let a change be part of a state whose fields have these reducers."""
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


def _own(kind: type) -> bool:
    """Whether a class is not one of pydantic or of Python."""
    return kind.__module__.partition(".")[0] not in ("pydantic", "builtins", "typing", "abc")


def _writer(kind: Any) -> TypeAdapter[Any]:
    """What writes one value of a type, in a tuple: only there can it be told to write a number that
    is none as it is, for us to refuse it, and not as null."""
    one: Any = tuple
    return TypeAdapter(one[kind], config=ConfigDict(ser_json_inf_nan="constants"))


_ANYTHING = _writer(Any)


def _type(field: FieldInfo) -> Any:
    """The type of a field and what limits it: pydantic warns of all else, such as an alias, where
    no model is around it."""
    annotated: Any = Annotated
    return annotated[field.annotation, Field(discriminator=field.discriminator), *field.metadata]


def _meant(field: TypeAdapter[Any], given: Json) -> Any:
    """What was given to a reducer: a value of the field, where it is one, else as JSON has it."""
    try:
        return field.validate_json(json.dumps(given), strict=True)
    except ValidationError:
        return given


def reducer_of(field: FieldInfo) -> str | Callable[[Any, Any], Any]:
    """How a change of a field becomes part of the state: by a word, or by code of the program."""
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
    """What an annotation has that reduces."""
    return [each for each in metadata if callable(each) and not isinstance(each, type)]


def is_kind(annotation: Any, kind: type) -> bool:
    """Whether an annotation is of a kind of collection, such as `list[int]` of `list`."""
    return (get_origin(annotation) or annotation) is kind


def _confidence(given: Any) -> float | None:
    if given is None:
        return None
    is_number = isinstance(given, int | float) and not isinstance(given, bool)
    if not is_number or not 0 <= given <= 1:
        raise InvalidUpdate(f"A step is sure from 0 to 1, not {given!r}.")
    return float(given)
