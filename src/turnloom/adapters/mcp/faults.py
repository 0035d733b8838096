"""What goes wrong with an MCP server, as sentences; never with what it was given in confidence."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import httpx2
from mcp import MCPError
from pydantic import ValidationError

from turnloom.errors import ToolServerError
from turnloom.kernel.values import said

# Characters of what a server said that a message repeats at most.
MOST_SAID = 1000
# Our code for "the server replied, and the reply cannot be read".
UNREADABLE = -32096
# Shorter words are not taken for secrets: hiding them would make messages unreadable.
SECRET_LENGTH = 8


class ServerEnded(Exception):
    """The program of a server closed its side; `code` is its exit code if it ended by itself."""

    code: int | None = None


class Misbehaved(Exception):
    """A server did what no server may do."""


@dataclass(frozen=True, slots=True)
class Faults:
    """The errors of one server."""

    name: str
    secrets: tuple[str, ...] = field(repr=False)
    last_words: Callable[[], str]

    def silent(self, what: str, seconds: float) -> ToolServerError:
        """The error of a server that said nothing in time."""
        return self._error(
            f"did not answer within {seconds:g} s when asked for {what}",
            "Check that it runs and is not overloaded, or give it a longer timeout.",
        )

    def refused(self, what: str, error: MCPError) -> ToolServerError:
        """The error of a server that answered with one."""
        return self._error(f"refused {what}: {_line(error)}", "Check what it was asked for.")

    def misbehaved(self, what: str, error: Exception) -> ToolServerError:
        """The error of an answer that cannot be used."""
        return self._error(
            f"answered {what} in a way that cannot be used: {_line(error)}",
            "Tell whoever maintains it.",
        )

    def failed(self, tool: str, text: str) -> ToolServerError:
        """The error that a tool reports of itself."""
        cut = text if len(text) <= MOST_SAID else f"{text[:MOST_SAID]}…"
        about = f"Tool {tool!r} of MCP server {self.name!r} failed: {cut or 'it does not say why'}"
        return ToolServerError(f"{_ended(self._masked(about))} Check its arguments.")

    def lost(self, what: str, seconds: float, reason: BaseException | None) -> ToolServerError:
        """The error of a connection that could not be made or broke, by what broke it."""
        match reason:
            case None:
                return self._error(f"was closed before it answered {what}", "")
            case TimeoutError():
                return self.silent(what, seconds)
            case Misbehaved():
                return self.misbehaved(what, reason)
            case _:
                return self._error(*_trouble(reason))

    def _error(self, text: str, remedy: str) -> ToolServerError:
        words = self._masked(self.last_words())
        about = _ended(self._masked(f"MCP server {self.name!r} {text}"))
        parts = (about, remedy, words and f"It last said: {words}")
        return ToolServerError(" ".join(part for part in parts if part))

    def _masked(self, text: str) -> str:
        for secret in self.secrets:
            text = text.replace(secret, "…")
        return text


def hidden(name: str) -> str:
    """What stands in place of a value that a server was given in confidence; it is never opened."""
    return f"⟨hidden:{name}⟩"


def secret_words(values: Iterable[str]) -> tuple[str, ...]:
    """The words in values that no message may hold, the longest first."""
    words = {word for value in values for word in (value, *value.split())}
    return tuple(sorted((word for word in words if len(word) >= SECRET_LENGTH), key=len)[::-1])


def _trouble(reason: BaseException) -> tuple[str, str]:
    """What keeps a connection from being there, and what to do."""
    match reason:
        case ServerEnded():
            return _ending(reason.code), "Run its `command` by hand to see why."
        case MCPError():
            text = f"refused the connection: {_line(reason)}"
            return text, "Check where it is and what it is given."
        case OSError():
            text = f"cannot be started: {reason.strerror}: {reason.filename!r}"
            return text, "Check its `command` and `cwd`."
        case httpx2.HTTPError() | httpx2.InvalidURL():
            text = f"cannot be reached: {_line(reason)}"
            return text, "Check that it runs, and that its `url` is right."
        case ValidationError() | RuntimeError():
            text = f"does not speak MCP as it should: {_line(reason)}"
            return text, "Check that it is an MCP server."
        case _:
            return f"cannot be used: {_line(reason)}", "Check how it is declared."


def _ending(code: int | None) -> str:
    if code is None:
        return "closed the connection"
    return f"ended by signal {-code}" if code < 0 else f"ended with exit code {code}"


def _line(error: BaseException) -> str:
    lines = [line.strip() for line in said(error).splitlines() if line.strip()]
    text = lines[0].rstrip(".") if lines else type(error).__name__
    return text if len(text) <= MOST_SAID else f"{text[:MOST_SAID]}…"


def _ended(text: str) -> str:
    return text if text.endswith((".", "!", "?", "…")) else f"{text}."
