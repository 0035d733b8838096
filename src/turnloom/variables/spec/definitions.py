"""Declarations of context variables."""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BeforeValidator,
    Field,
    SerializeAsAny,
    WithJsonSchema,
    field_validator,
    model_validator,
)

from turnloom.kernel.models import Declared
from turnloom.kernel.values import Json, as_object, preview
from turnloom.variables.spec.triggers import Trigger

Type = Literal["string", "integer", "number", "boolean", "object", "array", "document"]

# Other names of types, as languages and databases have them.
_TYPE_NAMES = {
    "str": "string",
    "text": "string",
    "int": "integer",
    "float": "number",
    "bool": "boolean",
    "dict": "object",
    "list": "array",
}


def _named(type: Json) -> Json:
    """The name of a type."""
    return _TYPE_NAMES.get(type, type) if isinstance(type, str) else type


# Set in every run, read-only.
BASE = ("workflow_name", "chat_id", "user_id", "app_id", "enterprise_id")

# Set from the environment, unless in production or defined by the workflow.
BAKED_IN = {"context_aware": "CONTEXT_AWARE", "monetization_enabled": "MONETIZATION_ENABLED"}

# The final status of a run, for hooks after the chat.
RUN_STATUS = "run_status"


class Static(Declared):
    """A constant of the workflow."""

    type: Literal["static"]
    value: Json


class FromEnvironment(Declared):
    """A feature flag from the environment; absent in production."""

    type: Literal["environment"]
    env_var: str = Field(min_length=1)
    default: Json = None

    @field_validator("env_var")
    @classmethod
    def _can_be_set(cls, given: str) -> str:
        if "\0" in given or "=" in given:
            raise ValueError(f"Invalid environment variable name {given!r}. Correct it.")
        return given


# `${user_id}` in a filter refers to an id of the run.
_ID = re.compile(r"\$\{(\w+)\}")
# Every database stores whole numbers up to this one exactly.
_LARGEST = 2**53

FilterValue = Annotated[Json, WithJsonSchema({"type": ["string", "number", "boolean"]})]


class DatabaseSource(Declared):
    """A field of the newest matching document of a collection, or an object of several fields."""

    type: Literal["database"]
    database_name: str | None = Field(default=None, min_length=1)
    collection: str = Field(min_length=1)
    search_by: Literal["workflow_name", "chat_id", "user_id", "app_id", "enterprise_id"] | None = (
        None
    )
    filter: dict[str, FilterValue] = {}
    field: str | None = Field(default=None, min_length=1)
    fields: tuple[Annotated[str, Field(min_length=1)], ...] = Field(default=(), strict=False)
    default: Json = None

    @property
    def ids(self) -> Mapping[str, str]:
        """The ids of the run that a document must have, by its field."""
        named = {self.search_by: self.search_by} if self.search_by else {}
        found = {key: id_in(value) for key, value in self.filter.items()}
        return {**named, **{key: name for key, name in found.items() if name is not None}}

    @property
    def constants(self) -> Mapping[str, Json]:
        """The constants that a document must have, by its field."""
        return {key: value for key, value in self.filter.items() if id_in(value) is None}

    @field_validator("filter")
    @classmethod
    def _is_a_filter(cls, given: dict[str, Json]) -> dict[str, Json]:
        for key, value in given.items():
            if problem := _filter_problem(value):
                raise ValueError(f"Filter {key!r} {problem}")
        return given

    @model_validator(mode="after")
    def _finds_something(self) -> Self:
        if not self.search_by and not self.filter:
            raise ValueError("Key 'search_by' is missing. Add it, or a `filter`.")
        if self.search_by in self.filter:
            raise ValueError(f"{self.search_by!r} is in `search_by` and in `filter`. Remove one.")
        return self

    @model_validator(mode="after")
    def _reads_something(self) -> Self:
        if self.field is None and not self.fields:
            raise ValueError("Key 'field' is missing. Add it, or a list of `fields`.")
        if self.field is not None and self.fields:
            raise ValueError("It has both `field` and `fields`. Remove one.")
        for number, name in enumerate(self.fields):
            if name in self.fields[:number]:
                raise ValueError(f"Field {name!r} is listed twice. Remove one of them.")
        return self


def id_in(value: Json) -> str | None:
    """The id of the run that a value of a filter refers to, if it does."""
    named = _ID.fullmatch(value) if isinstance(value, str) else None
    return named[1] if named and named[1] in BASE else None


def _filter_problem(value: Json) -> str:
    """Why a filter cannot have this value, and what to write; empty if it can."""
    if isinstance(value, str):
        ids = ", ".join(f"${{{name}}}" for name in BASE)
        is_fixed = "${" not in value or id_in(value) is not None
        return "" if is_fixed else f"is {value!r}. Write a constant, or one of {ids}."
    if not isinstance(value, int | float):
        return f"is {preview(value)}. Write a text, a number, true or false."
    is_exact = abs(value) <= _LARGEST
    return "" if is_exact else f"is {value!r}. Write a number up to {_LARGEST}."


def syntax_of(path: str) -> Literal["text", "json", "yaml"]:
    """The syntax of a file by the ending of its name."""
    if path.endswith((".yaml", ".yml")):
        return "yaml"
    return "json" if path.endswith(".json") else "text"


class FileSource(Declared):
    """A text, or a JSON or YAML document, in the workflow folder."""

    type: Literal["file"]
    path: str = Field(min_length=1)
    format: Literal["text", "json", "yaml"] | None = None

    @property
    def syntax(self) -> Literal["text", "json", "yaml"]:
        """How its content is read: its `format`, or else what the ending of the path says."""
        if self.format is not None:
            return self.format
        return syntax_of(self.path)

    @field_validator("path")
    @classmethod
    def _is_inside(cls, given: str) -> str:
        names = given.split("/")
        if "\\" in given or not given.isprintable() or any(n[:1] in ("", ".") for n in names):
            raise ValueError(
                f"Invalid path {given!r}. Write the path of a visible file inside the workflow "
                "folder, as in 'data/plans.json'."
            )
        return given


class Derived(Declared):
    """A value set by events of the run."""

    type: Literal["derived"]
    default: Json = None
    triggers: tuple[SerializeAsAny[Trigger], ...] = Field(default=(), strict=False)

    @model_validator(mode="before")
    @classmethod
    def _drops_no_transitions(cls, given: Any) -> Any:
        """An empty `transitions`, as MozaiksAI writes it, is the same as none."""
        value = as_object(given)
        if value is None or value.get("transitions", True):
            return given
        return {key: each for key, each in value.items() if key != "transitions"}


Source = Static | FromEnvironment | DatabaseSource | FileSource | Derived


class VariableDefinition(Declared):
    """A variable: its type, description and source."""

    name: str = Field(min_length=1)
    type: Annotated[Type | None, BeforeValidator(_named)] = None
    description: str = ""
    enum: tuple[Any, ...] | None = Field(default=None, min_length=1, strict=False)
    required: bool = False
    secret: bool = False
    gate: bool = False
    max_chars: int | None = Field(default=None, ge=1)
    source: Annotated[Source, Field(discriminator="type")]

    @field_validator("name")
    @classmethod
    def _is_one_line(cls, given: str) -> str:
        if not given.isprintable():
            raise ValueError(f"Variable name {given!r} has unprintable characters. Correct it.")
        return given


class Exposure(Declared):
    """The variables that an agent's prompt shows, and their format."""

    name: str
    variables: tuple[str, ...] = Field(default=(), strict=False)
    template: str | None = None
    header: str | None = None
    placement: Literal["append", "prepend", "replace"] = "append"
    null_label: str = "null"

    @field_validator("variables")
    @classmethod
    def _names_each_once(cls, given: tuple[str, ...]) -> tuple[str, ...]:
        for number, name in enumerate(given):
            if name in given[:number]:
                raise ValueError(f"{name!r} is listed twice. Remove one of them.")
        return given


class Variables(Declared):
    """The variables of a workflow and their exposures."""

    definitions: dict[str, VariableDefinition] = {}
    exposures: dict[str, Exposure] = {}
