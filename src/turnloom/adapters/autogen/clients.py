"""AutoGen's clients, created on demand and used by one call at a time."""

from collections import deque
from collections.abc import Iterator
from json import JSONDecodeError
from typing import Any

import httpx2
from autogen import OpenAIWrapper
from autogen.io.base import IOStream
from pydantic import ValidationError

from turnloom.adapters.autogen.asking import CallTransport, DeltaStream, LoopTransport
from turnloom.adapters.autogen.forms import Response
from turnloom.agents.logic.endings import Ending
from turnloom.errors import EngineError
from turnloom.kernel.values import error_text

# Finish reasons that AutoGen accepts; it fails on any other.
KNOWN_REASONS = ("stop", "length", "tool_calls", "content_filter", "function_call")


class Endings:
    """Notes how the answers of a wrapper's clients end, and what they used: clients drop the
    details of a streamed answer's usage. `last` is the last ending."""

    def __init__(self, wrapper: OpenAIWrapper) -> None:
        self.last, self.usage = Ending(), None
        clients: list[Any] = getattr(wrapper, "_clients", [])
        for client in clients:
            if (inner := getattr(client, "_oai_client", None)) is not None:
                completions = inner.chat.completions
                completions.create = self._with_notes(completions.create)

    def _with_notes(self, create: Any) -> Any:
        def noted(*args: Any, **kwargs: Any) -> Any:
            self.last, self.usage = Ending(), None
            given = create(*args, **kwargs)
            return self._streamed(given) if kwargs.get("stream") else self._note(given)

        return noted

    def _streamed(self, chunks: Any) -> Iterator[Any]:
        for chunk in chunks:
            yield self._note(chunk)

    def _note(self, given: Any) -> Any:
        """Note the finish reason in a chunk or in a whole answer."""
        self.last.note(given)
        self.usage = getattr(given, "usage", None) or self.usage
        for choice in getattr(given, "choices", None) or ():
            if choice.finish_reason and choice.finish_reason not in KNOWN_REASONS:
                choice.finish_reason = "stop"
        return given


Config = dict[str, Any]

# Values of `api_type` that use OpenAI's client, which accepts a transport.
BRIDGED = ("openai", "azure", "deepseek")

# Statuses of an unfinished response in OpenAI's Responses API.
UNFINISHED = ("cancelled", "failed", "in_progress", "queued")

# The keys of a request.
RequestKeys = frozenset[str]


class Client:
    """Client for the models of a `config_list`; it blocks, and serves one call at a time.

    Keys of the requests are removed from its configurations, because those would win.
    """

    def __init__(self, configs: list[Config], request_keys: RequestKeys) -> None:
        self._transport = LoopTransport()
        self._http = httpx2.Client(transport=self._transport, timeout=None)
        bridge = {"http_client": self._http}
        own = [
            {key: value for key, value in config.items() if key not in request_keys}
            | (bridge if config["api_type"] in BRIDGED else {})
            for config in configs
        ]
        self._wrapper = OpenAIWrapper(config_list=own)
        self._endings = Endings(self._wrapper)
        self._model = str(configs[-1]["model"])

    def ask(self, request: Config, transport: CallTransport, deltas: DeltaStream) -> Response:
        """The model's message and its usage.

        Raises:
            EngineError: the response is invalid or truncated; a retry may succeed.
        """
        self._transport.transport = transport
        self._http.cookies.clear()  # of the previous call
        try:
            with IOStream.set_default(deltas):
                response: Any = self._wrapper.create(**request)
        except (JSONDecodeError, ValidationError) as error:
            raise EngineError(f"The response is not valid: {error_text(error)}") from error
        if not _is_finished(response):
            raise EngineError("The answer is truncated: it has no finish reason.")
        (message, *_) = self._wrapper.extract_text_or_completion_object(response)
        model = response.model or self._model
        usage = self._endings.usage or response.usage
        return Response(message, usage, model, self._endings.last)


def _is_finished(response: Any) -> bool:
    """Whether a response has a finish reason, in either of OpenAI's protocols."""
    if (choices := getattr(response, "choices", None)) is None:
        return getattr(response, "status", None) not in UNFINISHED
    return any(choice.finish_reason for choice in choices)


class Clients:
    """The clients of one `config_list`.

    Creating a client is as expensive as a fast request, so it is reused. Only clients of OpenAI's
    kind are: they hold no connections.
    """

    def __init__(self, configs: list[Config]) -> None:
        self.model = str(configs[-1]["model"])
        self._configs = configs
        self._are_reused = all(config["api_type"] in BRIDGED for config in configs)
        self._idle: dict[RequestKeys, deque[Client]] = {}

    def ask(self, request: Config, transport: CallTransport, deltas: DeltaStream) -> Response:
        """The model's message and its usage; blocks this thread."""
        keys = frozenset(request)
        idle = self._idle.setdefault(keys, deque())
        try:
            client = idle.pop()
        except IndexError:
            client = Client(self._configs, keys)
        try:
            return client.ask(request, transport, deltas)
        finally:
            if self._are_reused:
                idle.append(client)
