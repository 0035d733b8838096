"""Forms of answers as pydantic models: those that workflows declare, and those of programs."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import NoneType
from typing import Annotated, Any, NamedTuple

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    JsonValue,
    PlainValidator,
    RootModel,
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    WithJsonSchema,
    create_model,
)
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import CoreSchema, ErrorDetails, PydanticCustomError, core_schema

from turnloom.agents.logic.outputs.language import candidates, is_null, labels_of
from turnloom.agents.logic.outputs.reading import describe_faults, size_of, unusable
from turnloom.agents.spec.outputs import (
    ArrayOf,
    Either,
    Key,
    MapOf,
    ObjectType,
    OneOf,
    Plain,
    Reference,
    Validated,
    ValueType,
)
from turnloom.kernel.documents import Path
from turnloom.kernel.values import Json, as_data, error_text, kind_of, preview
from turnloom.variables.logic.types import same

# Failed attempts at variants of a union per value, in addition to one per part: where variants
# are ambiguous, each level doubles them.
_MAX_TRIES = 10_000
# JSON terms in place of pydantic's Python terms.
_MESSAGES = {
    "model_type": "Input should be an object",
    "dict_type": "Input should be an object",
    "list_type": "Input should be an array",
    "bool_type": "Input should be true or false",
}


class _Object(BaseModel):
    model_config = ConfigDict(
        strict=True, extra="forbid", defer_build=True, allow_inf_nan=False, serialize_by_alias=True
    )


class _Value(RootModel[Any]):
    model_config = ConfigDict(strict=True, defer_build=True, allow_inf_nan=False)


class _Schema(GenerateJsonSchema):
    """Schemas as providers accept them: `anyOf` for unions, and no titles that repeat keys."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def tagged_union_schema(self, schema: core_schema.TaggedUnionSchema) -> JsonSchemaValue:
        return self.get_union_of_schemas([*map(self.generate_inner, schema["choices"].values())])


class _Undecided(Exception):
    """Too many variants of a union were tried."""


@dataclass(frozen=True)
class DeclaredModel:
    """A model that a workflow declares."""

    name: str
    types: "Types"

    @property
    def schema(self) -> dict[str, Json]:
        """Its JSON Schema, with the model at the top even if it refers to itself."""
        found = self.types.named(self.name).model_json_schema(schema_generator=_Schema)
        own = found.pop("$ref", "").removeprefix("#/$defs/")
        return {**found["$defs"][own], **found} if own else found

    def validate(self, value: Json) -> Validated:
        """The value with defaults filled in, or the problem."""
        return _validated(partial(_read, self.types.named(self.name)), value)


class ProgramModel:
    """A pydantic model of a program as the form of an agent's answers."""

    def __init__(self, model: type[BaseModel]) -> None:
        self.name = model.__name__
        self.schema: dict[str, Json] = model.model_json_schema()
        self._model = model

    def validate(self, value: Json) -> Validated:
        """The value with defaults filled in, or the problem."""
        return _validated(partial(read_program_model, self._model), value)


def read_program_model(model: type[BaseModel], value: Json) -> BaseModel:
    """The value of a program that JSON stands for."""
    return model.model_validate_json(as_data(value))


class Types:
    """Pydantic models of types that refer to each other, created on first use."""

    def __init__(self, forms: Mapping[str, ValueType]) -> None:
        self._forms = forms
        self._made: dict[str, type[BaseModel]] = {}

    def named(self, name: str) -> type[BaseModel]:
        """The pydantic model of a declared one."""
        if name not in self._made:
            form = self._forms[name]
            self._made[name] = (
                self._object(form, name)
                if isinstance(form, ObjectType)
                else self._value(form, name)
            )
        return self._made[name]

    def validate(self, form: ValueType, value: Json) -> Validated:
        """The value as a form has it, or the problem."""
        return _validated(partial(_read, self._value(form, "Value")), value)

    def _value(self, form: ValueType, name: str) -> type[BaseModel]:
        return create_model(name, __base__=_Value, root=(self._type(form, name), ...))

    def _object(self, form: ObjectType, name: str) -> type[BaseModel]:
        """Keys are aliases of neutral field names, so that any key is allowed."""
        fields: dict[str, Any] = {
            f"key{number}": (self._type(key.form, f"{name}_{title}"), _field(title, key))
            for number, (title, key) in enumerate(form.keys.items())
        }
        return create_model(name, __base__=_Object, __doc__=form.description or None, **fields)

    def _type(self, form: ValueType, name: str) -> Any:
        match form:
            case ObjectType():
                return self._object(form, name)
            case Reference(model=model, description=description):
                return Annotated[Any, _Named(model, self.named, description)]
            case _:
                found = self._unnamed(form, name)
                described = Field(description=form.description)
                return Annotated[found, described] if form.description else found

    def _unnamed(self, form: ValueType, name: str) -> Any:
        match form:
            case Plain(type=type):
                return _PLAIN[type]
            case OneOf(words=words):
                return _one_of(words)
            case ArrayOf(item=item):
                return list[self._type(item, name)]
            case MapOf(value=value):
                return dict[str, self._type(value, name)]
            case Either(variants=variants):
                return self._either(variants, name)
            case _:
                raise TypeError(f"{form!r} has no type.")

    def _either(self, variants: tuple[ValueType, ...], name: str) -> Any:
        others = [form for form in variants if not is_null(form)]
        if not others:
            return NoneType
        found = self._several(others, name) if len(others) > 1 else self._type(others[0], name)
        return found if len(others) == len(variants) else found | None

    def _several(self, variants: Sequence[ValueType], name: str) -> Any:
        forms = dict(zip(labels_of(variants), variants, strict=True))
        types = {label: self._type(form, f"{name}_{label[1:-1]}") for label, form in forms.items()}
        return Annotated[Any, _Variants(types, lambda value: candidates(forms, value, self._forms))]


@dataclass(frozen=True, eq=False)
class _Named:
    """A reference to a model, resolved late because models may refer to each other."""

    name: str
    find: Callable[[str], type[BaseModel]]
    description: str

    def __get_pydantic_core_schema__(self, _: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return handler.generate_schema(self.find(self.name))

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """The reference; providers reject a description next to it."""
        found = handler(schema)
        return {"anyOf": [found], "description": self.description} if self.description else found


class _Taken(NamedTuple):
    """A value and the variant it is validated as."""

    label: str
    value: Json


@dataclass(frozen=True, eq=False)
class _Variants:
    """A union: the first candidate type that accepts a value."""

    types: Mapping[str, Any]
    candidates: Callable[[Json], Sequence[str]]

    def __get_pydantic_core_schema__(self, _: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        choices: dict[str, CoreSchema] = {
            label: core_schema.no_info_before_validator_function(
                lambda taken: taken.value, handler.generate_schema(type)
            )
            for label, type in self.types.items()
        }
        return core_schema.with_info_wrap_validator_function(
            self._decide,
            core_schema.tagged_union_schema(choices, lambda taken: taken.label),
            serialization=core_schema.simple_ser_schema("any"),  # as the accepted variant
        )

    def _decide(self, value: Json, take: ValidatorFunctionWrapHandler, info: ValidationInfo) -> Any:
        labels = self.candidates(value)
        if not labels:
            names = " or ".join(label[1:-1] for label in self.types)
            raise PydanticCustomError("variant", "Input should be {names}", {"names": names})
        *others, last = labels
        for label in others:
            _count(info.context)
            try:
                return take(_Taken(label, value))
            except ValidationError:
                continue  # try the next candidate
        return take(_Taken(last, value))


def _count(tries: Iterator[int] | None) -> None:
    if tries is not None and next(tries, None) is None:
        raise _Undecided


def _read(model: type[BaseModel], value: Json) -> BaseModel:
    return model.model_validate(value, context=iter(range(_MAX_TRIES + size_of(value))))


def _validated(read: Callable[[Json], BaseModel], value: Json) -> Validated:
    """The value as a model writes it that reads it, so that it comes back as the same."""
    if problem := unusable(value):
        return Validated(None, problem)
    try:
        return Validated(read(value).model_dump(mode="json", by_alias=True, round_trip=True))
    except ValidationError as error:
        faults = error.errors(include_url=False, include_context=False, include_input=False)
        return Validated(None, describe_faults([_fault(each) for each in faults]))
    except _Undecided:
        return Validated(None, "The value matches too many variants to decide between them.")
    except Exception as error:  # noqa: BLE001 - validators of programs raise anything; it is recorded
        return Validated(None, f"The value is refused: {type(error).__name__}: {error_text(error)}")


def _fault(error: ErrorDetails) -> tuple[Path, str]:
    return error["loc"], _MESSAGES.get(error["type"], error["msg"])


def _field(title: str, key: Key) -> Any:
    return Field(alias=title) if key.required else Field(default=key.default, alias=title)


def _one_of(words: tuple[Json, ...]) -> Any:
    kinds = {kind_of(word) for word in words}
    schema: dict[str, Json] = {"enum": list(words)}
    if len(kinds) == 1:
        schema["type"] = kinds.pop()

    def find(value: Json) -> Json:
        for word in words:
            if same(word, value):
                return word
        allowed = ", ".join(preview(word) for word in words)
        raise PydanticCustomError("words", "Input should be one of {allowed}", {"allowed": allowed})

    return Annotated[Any, PlainValidator(find), WithJsonSchema(schema)]


def _as_integer(value: Json) -> Json:
    """In JSON, 5.0 is an integer too."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


_PLAIN: Mapping[str, Any] = {
    "string": str,
    "integer": Annotated[int, BeforeValidator(_as_integer)],
    "number": float,
    "boolean": bool,
    "null": NoneType,
    "any": JsonValue,
}
