"""How answers end, as OpenAI's client reads it and the clients of the classic line do not tell."""

from collections.abc import Iterator
from typing import Any

from autogen import OpenAIWrapper

# The reasons that the classic line takes for an end; it fails at any other.
KNOWN = ("stop", "length", "tool_calls", "content_filter", "function_call")


class Ending:
    """Notes how the answers of a wrapper's clients end, one at a time.

    `reason` is the provider's word for it.
    """

    def __init__(self, wrapper: OpenAIWrapper) -> None:
        self.reason = ""
        clients: list[Any] = getattr(wrapper, "_clients", [])
        for client in clients:
            if (inner := getattr(client, "_oai_client", None)) is not None:
                completions = inner.chat.completions
                completions.create = self._noting(completions.create)

    def _noting(self, create: Any) -> Any:
        def noted(*args: Any, **kwargs: Any) -> Any:
            self.reason = ""
            given = create(*args, **kwargs)
            return self._streamed(given) if kwargs.get("stream") else self._note(given)

        return noted

    def _streamed(self, chunks: Any) -> Iterator[Any]:
        for chunk in chunks:
            yield self._note(chunk)

    def _note(self, given: Any) -> Any:
        """Note what a piece of an answer, or a whole one, says of its end."""
        for choice in getattr(given, "choices", None) or ():
            if choice.finish_reason:
                self.reason = choice.finish_reason
                choice.finish_reason = self.reason if self.reason in KNOWN else "stop"
        return given
