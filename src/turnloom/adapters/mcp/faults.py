"""Error messages for MCP servers, with secrets masked."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import httpx2
from mcp import MCPError
from pydantic import ValidationError

from turnloom.errors import ToolServerError
from turnloom.kernel.values import error_text

# The longest quotation of a server's message, in characters.
MAX_QUOTED = 1000
# Our error code for a reply that cannot be parsed.
UNREADABLE = -32096
# Shorter words are not masked: messages would become unreadable.
SECRET_LENGTH = 8


class ServerEnded(Exception):
    """The server's program closed the connection. `code` is its exit code if it exited by
    itself."""

    code: int | None = None


class ProtocolViolation(Exception):
    """The server violated the protocol."""


@dataclass(frozen=True, slots=True)
class Faults:
    """Creates the errors of one server."""

    name: str
    secrets: tuple[str, ...] = field(repr=False)
    last_words: Callable[[], str]

    def timed_out(self, what: str, seconds: float) -> ToolServerError:
        """The error for a server that did not answer in time."""
        return self._error(
            f"did not answer a request for {what} within {seconds:g} s",
            "Check that it runs and is not overloaded, or increase its timeout.",
        )

    def refused(self, what: str, error: MCPError) -> ToolServerError:
        """The error for a request that the server refused."""
        return self._error(f"refused {what}: {_line(error)}", "Check the request.")

    def unusable(self, what: str, error: Exception) -> ToolServerError:
        """The error for an unusable answer."""
        return self._error(
            f"gave an unusable answer for {what}: {_line(error)}",
            "Report it to the maintainer of the server.",
        )

    def failed(self, tool: str, text: str) -> ToolServerError:
        """The error that a tool reports."""
        cut = text if len(text) <= MAX_QUOTED else f"{text[:MAX_QUOTED]}…"
        about = f"Tool {tool!r} of MCP server {self.name!r} failed: {cut or 'no reason given'}"
        return ToolServerError(f"{_with_period(self._masked(about))} Check its arguments.")

    def lost(self, what: str, seconds: float, reason: BaseException | None) -> ToolServerError:
        """The error for a connection that failed or broke, by its cause."""
        match reason:
            case None:
                return self._error(f"was closed before it answered {what}", "")
            case TimeoutError():
                return self.timed_out(what, seconds)
            case ProtocolViolation():
                return self.unusable(what, reason)
            case _:
                return self._error(*_connection_failure(reason))

    def _error(self, text: str, remedy: str) -> ToolServerError:
        words = self._masked(self.last_words())
        about = _with_period(self._masked(f"MCP server {self.name!r} {text}"))
        parts = (about, remedy, words and f"Its last output: {words}")
        return ToolServerError(" ".join(part for part in parts if part))

    def _masked(self, text: str) -> str:
        for secret in self.secrets:
            text = text.replace(secret, "…")
        return text


def hidden(name: str) -> str:
    """The placeholder for a secret value of a server; it is never resolved."""
    return f"⟨hidden:{name}⟩"


def secret_words(values: Iterable[str]) -> tuple[str, ...]:
    """The words in values that messages must not contain, longest first."""
    words = {word for value in values for word in (value, *value.split())}
    return tuple(sorted((word for word in words if len(word) >= SECRET_LENGTH), key=len)[::-1])


def _connection_failure(reason: BaseException) -> tuple[str, str]:
    """Why a connection failed, and the remedy."""
    match reason:
        case ServerEnded():
            return _ending(reason.code), "Run its `command` by hand to see why."
        case MCPError():
            text = f"refused the connection: {_line(reason)}"
            return text, "Check its address and its credentials."
        case OSError():
            text = f"cannot be started: {reason.strerror}: {reason.filename!r}"
            return text, "Check its `command` and `cwd`."
        case httpx2.HTTPError() | httpx2.InvalidURL():
            text = f"cannot be reached: {_line(reason)}"
            return text, "Check that it runs and that its `url` is correct."
        case ValidationError() | RuntimeError():
            text = f"does not follow the MCP protocol: {_line(reason)}"
            return text, "Check that it is an MCP server."
        case _:
            return f"cannot be used: {_line(reason)}", "Check its declaration."


def _ending(code: int | None) -> str:
    if code is None:
        return "closed the connection"
    return f"ended by signal {-code}" if code < 0 else f"ended with exit code {code}"


def _line(error: BaseException) -> str:
    lines = [line.strip() for line in error_text(error).splitlines() if line.strip()]
    text = lines[0].rstrip(".") if lines else type(error).__name__
    return text if len(text) <= MAX_QUOTED else f"{text[:MAX_QUOTED]}…"


def _with_period(text: str) -> str:
    return text if text.endswith((".", "!", "?", "…")) else f"{text}."
