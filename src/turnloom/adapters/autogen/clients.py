"""Clients of the classic line: made when they are missing, and lent to one call at a time."""

from collections import deque
from collections.abc import Iterator
from json import JSONDecodeError
from typing import Any

import httpx2
from autogen import OpenAIWrapper
from autogen.io.base import IOStream
from pydantic import ValidationError

from turnloom.adapters.autogen.asking import CallTransport, Hearing, LoopTransport
from turnloom.adapters.autogen.forms import Response
from turnloom.agents.logic.endings import Ending
from turnloom.errors import EngineError
from turnloom.kernel.values import said

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


Config = dict[str, Any]

# What is reached by OpenAI's client, which takes a transport.
BRIDGED = ("openai", "azure", "deepseek")

# What the newer protocol of OpenAI calls a response that has not come to its end.
UNENDED = ("cancelled", "failed", "in_progress", "queued")

# What a request says, by key.
Said = frozenset[str]


class Client:
    """What asks the models of a `config_list`, in a thread, for one call at a time.

    Its configurations are without what the requests say, since it would win over them.
    """

    def __init__(self, configs: list[Config], said: Said) -> None:
        self._transport = LoopTransport()
        self._http = httpx2.Client(transport=self._transport, timeout=None)
        bridge = {"http_client": self._http}
        own = [
            {key: value for key, value in config.items() if key not in said}
            | (bridge if config["api_type"] in BRIDGED else {})
            for config in configs
        ]
        self._wrapper = OpenAIWrapper(config_list=own)
        self._endings = Endings(self._wrapper)
        self._model = str(configs[-1]["model"])

    def ask(self, request: Config, way: CallTransport, hearing: Hearing) -> Response:
        """The message that a model answers with, and its usage.

        Raises:
            EngineError: what came is no answer; another one may be.
        """
        self._transport.way = way
        self._http.cookies.clear()  # those of the call before
        try:
            with IOStream.set_default(hearing):
                response: Any = self._wrapper.create(**request)
        except (JSONDecodeError, ValidationError) as error:
            raise EngineError(f"It sent what is no answer. {said(error)}") from error
        if not _is_ended(response):
            raise EngineError("The answer has no end.")
        (message, *_) = self._wrapper.extract_text_or_completion_object(response)
        model = response.model or self._model
        return Response(message, response.usage, model, self._endings.last)


def _is_ended(response: Any) -> bool:
    """Whether a response says how it ended, as those of either protocol of OpenAI do."""
    if (choices := getattr(response, "choices", None)) is None:
        return getattr(response, "status", None) not in UNENDED
    return any(choice.finish_reason for choice in choices)


class Clients:
    """The clients of one `config_list`.

    To make one costs as much as to ask a quick model, so it is kept for the next call when it is
    back. It holds no connection, which is why clients of other providers, who do, are not kept.
    """

    def __init__(self, configs: list[Config]) -> None:
        self.model = str(configs[-1]["model"])
        self._configs = configs
        self._are_kept = all(config["api_type"] in BRIDGED for config in configs)
        self._idle: dict[Said, deque[Client]] = {}

    def ask(self, request: Config, way: CallTransport, hearing: Hearing) -> Response:
        """The message that a model answers with, and its usage; waits for it in this thread."""
        said = frozenset(request)
        idle = self._idle.setdefault(said, deque())
        try:
            client = idle.pop()
        except IndexError:
            client = Client(self._configs, said)
        try:
            return client.ask(request, way, hearing)
        finally:
            if self._are_kept:
                idle.append(client)
