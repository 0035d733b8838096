"""Declarations of context variables."""

from typing import Annotated, Any, Literal

from pydantic import Field, SerializeAsAny, field_validator, model_validator

from turnloom.kernel.models import Declared
from turnloom.kernel.values import Json, as_object
from turnloom.variables.spec.triggers import Trigger

Type = Literal["string", "integer", "number", "boolean", "object", "array", "document"]

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


class DatabaseSource(Declared):
    """A field of the newest matching document of a collection."""

    type: Literal["database"]
    database_name: str | None = Field(default=None, min_length=1)
    collection: str = Field(min_length=1)
    search_by: Literal["workflow_name", "chat_id", "user_id", "app_id", "enterprise_id"]
    field: str = Field(min_length=1)
    default: Json = None


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


Source = Static | FromEnvironment | DatabaseSource | Derived


class VariableDefinition(Declared):
    """A variable: its type, description and source."""

    name: str = Field(min_length=1)
    type: Type | None = None
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
