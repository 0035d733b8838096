"""Requests to the loopback model, and its scripted replies."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from turnloom.agents.spec import Answer
from turnloom.kernel.values import Json, as_data


@dataclass(frozen=True)
class ModelRequest:
    """A request to the model, with header names in lower case and the body decoded.

    The properties read the body of either protocol.
    """

    path: str
    headers: Mapping[str, str]
    body: Mapping[str, Json]

    @property
    def messages(self) -> list[dict[str, Json]]:
        """The messages, calls and results so far, in the form of the protocol."""
        return self.body["input"] if "input" in self.body else self.body["messages"]

    @property
    def tools(self) -> list[str]:
        """The names of the offered tools."""
        return [tool.get("function", tool)["name"] for tool in self.body.get("tools") or ()]

    @property
    def results(self) -> list[str]:
        """The tool results so far, as strings."""
        results = [
            item.get("output", item.get("content")) for item in self.messages if _is_result(item)
        ]
        return [each if isinstance(each, str) else as_data(each) for each in results]

    @property
    def text(self) -> str:
        """The instructions and messages as one JSON string, for searching."""
        return as_data([self.body.get("instructions", ""), self.messages])


def _is_result(item: Mapping[str, Any]) -> bool:
    """Whether a message is a tool result."""
    return item.get("role") == "tool" or item.get("type") == "function_call_output"


@dataclass(frozen=True)
class HttpRefusal:
    """Reject the request with a status. `retry_after` (seconds or a date) sets that header. With
    `is_page` the message is the whole body, as in an error page of a proxy."""

    status: int
    message: str = "The script of the loopback model rejects this request."
    retry_after: float | str | None = None
    is_page: bool = False


@dataclass(frozen=True)
class BrokenReply:
    """Stream this text, then break the connection."""

    text: str = ""


@dataclass(frozen=True)
class StalledReply:
    """Stream this text, then send nothing more."""

    text: str = ""


@dataclass(frozen=True)
class SlowReply:
    """Answer slowly: wait for some seconds before each chunk."""

    answer: str | Answer
    seconds: float


@dataclass(frozen=True)
class UnfinishedReply:
    """Send an answer without its finish reason.

    Without `is_closed`, a stream also lacks its last event, `[DONE]`.
    """

    answer: str | Answer
    is_closed: bool = True


@dataclass(frozen=True)
class LingeringReply:
    """Stream a complete answer, then keep the connection open."""

    answer: str | Answer


@dataclass(frozen=True)
class EmptyReply:
    """A valid reply without an answer."""


@dataclass(frozen=True)
class InvalidReply:
    """A reply that violates the protocol."""

    body: str = '{"choices": [{"index": 0, '


Line = (
    str
    | Answer
    | HttpRefusal
    | BrokenReply
    | StalledReply
    | SlowReply
    | UnfinishedReply
    | LingeringReply
    | EmptyReply
    | InvalidReply
)

# The replies of a model: one for each request, in order, or a function of the request.
Lines = Sequence[Line] | Callable[[ModelRequest], Line | Awaitable[Line]]
