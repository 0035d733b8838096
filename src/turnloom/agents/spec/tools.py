"""Tools: declarations, schemas, calls and results."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, Protocol

import msgspec
from pydantic import BeforeValidator, Field, model_validator

from turnloom.kernel.models import Declared, is_said
from turnloom.kernel.values import Json
from turnloom.variables.spec import Context

# Built-in tool of every workflow: a digest of the variables that the agent may see.
DIGEST = "context_digest"

Display = Literal["inline", "artifact"]


class Ui(Declared):
    """How a tool's question is displayed, and the schema of its answer.

    `response` is a JSON Schema, or the name of a model of `structured_outputs`.
    """

    component: str | None = None
    mode: Display | None = None
    response: str | dict[str, Any] | None = None


def _said(ui: Json) -> Json:
    """None for a `ui` whose keys are all null."""
    return ui if is_said(ui) or ui == {} else None


class Tool(Declared):
    """A function of the workflow's code, offered to an agent as a tool.

    With `auto_invoke` it receives the agent's structured output; otherwise the model calls it.
    """

    agent: str | None = None
    file: str = Field(min_length=1)
    function: str = Field(min_length=1)
    name: str = ""
    description: str = ""
    tool_type: Literal["Agent_Tool", "UI_Tool"] = "Agent_Tool"
    auto_invoke: bool = False
    ui: Annotated[Ui | None, BeforeValidator(_said)] = None
    timeout_s: float = Field(default=60.0, gt=0)

    @property
    def title(self) -> str:
        """The name of the tool: its `name`, or that of its function."""
        return self.name or self.function


class DeclaredServer(Declared):
    """A Model Context Protocol server.

    It is started (`command`) or connected to (`url`). The values of `env` and `headers` are names
    of environment variables.
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
                f"Server {self.name!r} needs either `command` or `url`. Set exactly one of them."
            )
        if self.url and not self.url.lower().startswith(("http://", "https://")):
            raise ValueError(
                f"The `url` of server {self.name!r} must start with http:// or https://."
            )
        return self


@dataclass(frozen=True, slots=True)
class Toolkit:
    """The tools of a workflow by name, and the tools of each agent.

    `aliases` maps functions and components to their tool, `responses` maps a tool to the JSON
    Schema of people's answers, and `described` an agent and its tool to a description of its own.
    """

    tools: Mapping[str, Tool] = field(default_factory=dict[str, Tool])
    bound: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    servers: tuple[DeclaredServer, ...] = ()
    aliases: Mapping[str, str] = field(default_factory=dict[str, str])
    responses: Mapping[str, Json] = field(default_factory=dict[str, Json])
    described: Mapping[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])

    def of(self, agent: str) -> list[Tool]:
        """The declared tools of an agent, in order."""
        return [self.tools[name] for name in self.bound.get(agent, ()) if name in self.tools]

    def called(self, word: str) -> str:
        """The tool that a function, component or tool name refers to; otherwise the word itself."""
        return self.aliases.get(word, word)


class ToolSchema(msgspec.Struct, frozen=True):
    """A tool as an engine sees it; `parameters` is the JSON Schema of its arguments."""

    name: str
    description: str
    parameters: dict[str, Json]


class ToolCall(msgspec.Struct, frozen=True, omit_defaults=True):
    """A tool call that an engine requests; `id` is the engine's id of the call."""

    tool: str
    arguments: dict[str, Json] = {}
    id: str = ""


class ToolResult(msgspec.Struct, frozen=True, omit_defaults=True):
    """The result of a tool call: a JSON value, or an error."""

    value: Json = None
    error: str = ""


class Callee(Protocol):
    """A function of a workflow's code, or a tool of a server.

    `may_ask` says whether it can ask people; only async functions can.
    """

    schema: ToolSchema
    may_ask: bool

    async def __call__(self, arguments: Mapping[str, Json], context: Context) -> Json:
        """Call it and return its result.

        Raises:
            ValueError: the arguments do not match its schema.
        """
        ...


class ToolServer(Protocol):
    """A connection to a server of tools."""

    async def tools(self) -> Sequence[ToolSchema]:
        """List the tools that it offers now.

        Raises:
            ToolServerError: the server is unreachable or does not answer.
        """
        ...

    async def call(self, tool: str, arguments: Mapping[str, Json]) -> Json:
        """Call a tool and return its result.

        Raises:
            ToolServerError: the tool failed, or the server does not answer.
        """
        ...

    async def aclose(self) -> None:
        """Close the connection."""
        ...
