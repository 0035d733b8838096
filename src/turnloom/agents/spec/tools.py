"""Tools as they are declared, called, and shown to engines."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import msgspec
from pydantic import Field, model_validator

from turnloom.kernel.models import Declared
from turnloom.kernel.values import Json
from turnloom.variables.spec import Context

# The tool that every workflow has: it gives an agent a digest of the variables it may see.
DIGEST = "context_digest"

Display = Literal["inline", "artifact"]


class Ui(Declared):
    """How a question of a tool is shown, and what an answer to it looks like.

    `response` is a JSON Schema, or the name of a model of `structured_outputs`.
    """

    component: str | None = None
    mode: Display | None = None
    response: str | dict[str, Any] | None = None


class Tool(Declared):
    """A function of the workflow's code that an agent may have called.

    With `auto_invoke` it is called with the agent's structured output; else the model decides.
    """

    agent: str | None = None
    file: str = Field(min_length=1)
    function: str = Field(min_length=1)
    name: str = ""
    description: str = ""
    tool_type: Literal["Agent_Tool", "UI_Tool"] = "Agent_Tool"
    auto_invoke: bool = False
    ui: Ui | None = None
    timeout_s: float = Field(default=60.0, gt=0)

    @model_validator(mode="after")
    def _asks_only_as_a_ui_tool(self) -> "Tool":
        if self.ui is not None and self.tool_type != "UI_Tool":
            raise ValueError(
                f"Tool {self.title!r} has `ui`, which is for tools that ask people. "
                "Set `tool_type: UI_Tool`, or drop it."
            )
        return self

    @property
    def title(self) -> str:
        """What the tool is called: its `name`, or that of its function."""
        return self.name or self.function


class DeclaredServer(Declared):
    """A program that offers tools by the Model Context Protocol.

    It is started (`command`) or reached (`url`). `env` and `headers` take their values from the
    environment variables that they name.
    """

    name: str = Field(min_length=1)
    agent: str | None = None
    command: tuple[str, ...] = Field(default=(), strict=False)
    url: str | None = None
    env: dict[str, str] = {}
    headers: dict[str, str] = {}
    tools: tuple[str, ...] = Field(default=(), strict=False)
    timeout_s: float = Field(default=60.0, gt=0)

    @model_validator(mode="after")
    def _is_reached_one_way(self) -> "DeclaredServer":
        if bool(self.command) == bool(self.url):
            raise ValueError(
                f"Server {self.name!r} is reached by `command` or by `url`. Give one of them."
            )
        if self.url and not self.url.lower().startswith(("http://", "https://")):
            raise ValueError(f"The `url` of server {self.name!r} begins with http:// or https://.")
        return self


@dataclass(frozen=True, slots=True)
class Toolkit:
    """The tools of a workflow by name, and which agents have them.

    `aliases` leads from functions and components to the tool they belong to, `responses` from a
    tool to the JSON Schema of what people answer it.
    """

    tools: Mapping[str, Tool] = field(default_factory=dict[str, Tool])
    bound: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    servers: tuple[DeclaredServer, ...] = ()
    aliases: Mapping[str, str] = field(default_factory=dict[str, str])
    responses: Mapping[str, Json] = field(default_factory=dict[str, Json])

    def of(self, agent: str) -> list[Tool]:
        """The declared tools of an agent, in order."""
        return [self.tools[name] for name in self.bound.get(agent, ()) if name in self.tools]

    def called(self, word: str) -> str:
        """The tool that a function, a component or its own name stands for; else the word."""
        return self.aliases.get(word, word)


class ToolSchema(msgspec.Struct, frozen=True):
    """A tool as an engine is told of it; `parameters` is a JSON Schema of its arguments."""

    name: str
    description: str
    parameters: dict[str, Json]


class ToolCall(msgspec.Struct, frozen=True, omit_defaults=True):
    """A tool that an engine wants called; `id` is the engine's own word for this call."""

    tool: str
    arguments: dict[str, Json] = {}
    id: str = ""


class ToolResult(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a call gave: a JSON value, or why it failed."""

    value: Json = None
    error: str = ""


class Callee(Protocol):
    """A function of a workflow's code, or a tool of another program.

    `may_ask` says whether it can wait for people: only what is async can.
    """

    schema: ToolSchema
    may_ask: bool

    async def __call__(self, arguments: Mapping[str, Json], context: Context) -> Json:
        """What it gives for these arguments.

        Raises:
            ValueError: the arguments are not those of its schema.
        """
        ...


class ToolServer(Protocol):
    """A program that offers tools."""

    async def tools(self) -> Sequence[ToolSchema]:
        """What it offers now.

        Raises:
            ToolServerError: it cannot be reached, or does not answer.
        """
        ...

    async def call(self, tool: str, arguments: Mapping[str, Json]) -> Json:
        """What a tool of it gives.

        Raises:
            ToolServerError: the tool failed, or the server does not answer.
        """
        ...

    async def aclose(self) -> None:
        """Part from it."""
        ...
