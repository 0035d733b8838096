from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Role = Literal["user", "assistant", "tool", "developer"]

class LM15Error(Exception): ...
class UnknownModelError(LM15Error): ...
class StreamAssemblyError(LM15Error): ...

class NotConfiguredError(LM15Error):
    env_keys: tuple[str, ...]

@dataclass(frozen=True)
class Timeouts:
    connect: float = 10.0
    read: float = 600.0
    write: float = 600.0
    pool: float | None = None

@dataclass(frozen=True)
class RouterConfig:
    api_keys: Mapping[str, str] | None = None
    base_urls: Mapping[str, str] | None = None
    timeouts: Timeouts | None = None

@dataclass(frozen=True)
class StreamEvent:
    type: str
    finish_reason: str | None = None

class Resolution:
    provider: str
    model: str

class LMRouter:
    def lm(self, model: str) -> object: ...

@dataclass(frozen=True)
class TextPart:
    text: str

@dataclass(frozen=True)
class RefusalPart:
    text: str

@dataclass(frozen=True)
class DataPart:
    value: Any

@dataclass(frozen=True)
class ToolCallPart:
    id: str
    name: str
    input: dict[str, Any]

@dataclass(frozen=True)
class ToolResultPart:
    id: str
    content: tuple[TextPart, ...]
    name: str | None = None
    is_error: bool = False

Part = TextPart | RefusalPart | DataPart | ToolCallPart | ToolResultPart

@dataclass(frozen=True)
class Message:
    role: Role
    parts: tuple[Part, ...]

@dataclass(frozen=True)
class FunctionTool:
    name: str
    description: str | None
    parameters: dict[str, Any]

@dataclass(frozen=True)
class Config:
    max_tokens: int | None = None
    temperature: float | None = None
    response_format: dict[str, Any] | None = None

@dataclass(frozen=True)
class Request:
    model: str
    messages: tuple[Message, ...]
    system: str | None = None
    tools: tuple[FunctionTool, ...] = ()
    config: Config = ...

@dataclass(frozen=True)
class Usage:
    input_tokens: int | None = None
    output_tokens: int | None = ...
    cache_read_tokens: int | None = ...
    cache_write_tokens: int | None = ...
    reasoning_tokens: int | None = None

@dataclass(frozen=True)
class Response:
    id: str | None
    model: str
    message: Message
    finish_reason: str
    usage: Usage
    logprobs: Any = None
    provider_data: Mapping[str, Any] | None = None
