"""What a user declares about context variables."""

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from weft.kernel.models import Declared
from weft.kernel.values import Json

Type = Literal["string", "integer", "number", "boolean", "object", "array", "document"]

# Seeded into every run, read-only.
BASE = ("workflow_name", "chat_id", "user_id", "app_id", "enterprise_id")

# Seeded from the environment unless the run is in production or a definition has the name.
BAKED_IN = {"context_aware": "CONTEXT_AWARE", "monetization_enabled": "MONETIZATION_ENABLED"}


class Static(Declared):
    """A constant of the workflow."""

    type: Literal["static"]
    value: Json


class FromEnvironment(Declared):
    """A feature flag of the deployment; absent in production."""

    type: Literal["environment"]
    env_var: str = Field(min_length=1)
    default: Json = None


class Match(Declared):
    """What a text must be like; all that is said must hold."""

    equals: str | None = None
    contains: str | None = None
    regex: str | None = None

    @model_validator(mode="after")
    def _says_something(self) -> "Match":
        if self.equals is None and self.contains is None and self.regex is None:
            raise ValueError("'match' is empty. Say `equals`, `contains` or `regex`.")
        return self


class AgentText(Declared):
    """Fires when a message of an agent matches."""

    type: Literal["agent_text"]
    agent: str
    match: Match
    value: Json = True
    trim: bool = True
    ignore_case: bool = True
    exact: bool = False
    once: bool = False
    hide: bool = False


class Derived(Declared):
    """A value that the events of the run set."""

    type: Literal["derived"]
    default: Json = None
    triggers: tuple[AgentText, ...] = Field(default=(), strict=False)


Source = Annotated[Static | FromEnvironment | Derived, Field(discriminator="type")]


class Definition(Declared):
    """One variable: its type, what it is for, and where its value comes from."""

    name: str = Field(min_length=1)
    type: Type | None = None
    description: str = ""
    enum: tuple[Any, ...] | None = Field(default=None, strict=False)
    source: Source


class Exposure(Declared):
    """Which variables an agent's prompt shows."""

    name: str
    variables: tuple[str, ...] = Field(default=(), strict=False)


class Variables(Declared):
    """All variables of a workflow and who sees them."""

    definitions: dict[str, Definition] = {}
    exposures: dict[str, Exposure] = {}
