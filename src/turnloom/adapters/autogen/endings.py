"""How answers end, as OpenAI's client reads it and the clients of the classic line do not tell."""

from collections.abc import Iterator
from typing import Any

from autogen import OpenAIWrapper

from turnloom.agents.logic.endings import Ending

# The reasons that the classic line takes for an end; it fails at any other.
KNOWN = ("stop", "length", "tool_calls", "content_filter", "function_call")


class Endings:
    """Notes how the answers of a wrapper's clients end; `last` is that of the last one."""

    def __init__(self, wrapper: OpenAIWrapper) -> None:
        self.last = Ending()
        clients: list[Any] = getattr(wrapper, "_clients", [])
        for client in clients:
            if (inner := getattr(client, "_oai_client", None)) is not None:
                completions = inner.chat.completions
                completions.create = self._noting(completions.create)

    def _noting(self, create: Any) -> Any:
        def noted(*args: Any, **kwargs: Any) -> Any:
            self.last = Ending()
            given = create(*args, **kwargs)
            return self._streamed(given) if kwargs.get("stream") else self._note(given)

        return noted

    def _streamed(self, chunks: Any) -> Iterator[Any]:
        for chunk in chunks:
            yield self._note(chunk)

    def _note(self, given: Any) -> Any:
        """Note what a piece of an answer, or a whole one, says of its end."""
        self.last.note(given)
        for choice in getattr(given, "choices", None) or ():
            if choice.finish_reason and choice.finish_reason not in KNOWN:
                choice.finish_reason = "stop"
        return given
