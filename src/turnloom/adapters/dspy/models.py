"""DSPy models by name, and the connections to their providers."""

import json
import os
import re
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager
from types import SimpleNamespace as Namespace
from typing import Any

from dspy import LM
from dspy.clients.engines import AsyncLM15Engine, LM15Engine
from dspy.lm15 import (
    LM15Error,
    NotConfiguredError,
    Request,
    Response,
    RouterConfig,
    StreamAssemblyError,
    Timeouts,
    UnknownModelError,
)

from turnloom.agents.logic.endings import note
from turnloom.agents.logic.model_errors import unset
from turnloom.agents.spec import Task
from turnloom.errors import UsageError
from turnloom.kernel.values import as_array, as_object

# The DSPy provider for `base_url`: OpenAI's chat protocol, which all compatible servers speak.
COMPATIBLE = "openai-chat"


# The last line of a stream.
DONE = b"data: [DONE]"

# Prefix of an event line, and words that occur in events about the end of an answer.
EVENT, INCOMPLETE = b"data: ", b"response.incomplete"
ENDINGS = (b"refusal", INCOMPLETE)

# Statuses of an unfinished response in OpenAI's Responses API.
UNFINISHED = ("cancelled", "failed", "in_progress", "queued")


class Transport:
    """DSPy transport that ends a stream at its end marker. DSPy waits for the server to close the
    connection."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    @asynccontextmanager
    async def stream(self, request: Any) -> AsyncGenerator[Any]:
        """The response to a request."""
        async with self._inner.stream(request) as response:
            yield EndedResponse(response)


class EndedResponse:
    """A response that is read up to its end marker."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def aiter_lines(self) -> AsyncGenerator[bytes]:
        """The lines of a streamed response."""
        rest = bytearray()
        async for piece in self._inner:
            rest += piece
            *lines, rest = rest.split(b"\n")
            for line in lines:
                yield _note_ending(bytes(line))
                if line.rstrip() == DONE:
                    return
        if rest:
            yield bytes(rest)


def _note_ending(line: bytes) -> bytes:
    """Note how the answer ended, and return the line for DSPy.

    DSPy ignores refusals, and rejects answers of OpenAI's Responses API that were cut at their
    token limit. It receives those as completed ones.
    """
    if not line.startswith(EVENT) or not any(word in line for word in ENDINGS):
        return line
    try:
        event = json.loads(line.removeprefix(EVENT), object_hook=lambda each: Namespace(**each))
    except ValueError:  # reported by DSPy
        return line
    note(event)
    is_cut = getattr(event, "type", "") == INCOMPLETE.decode()
    return line.replace(INCOMPLETE, b"response.completed", 1) if is_cut else line


class CheckedConnections(AsyncLM15Engine):
    """Connections that reject answers without a finish reason. DSPy accepts a truncated answer if
    the stream closes properly."""

    def _target(self, request: Request, *, streaming: bool = False) -> Any:
        """The provider for a request, with a transport that ends with the answer."""
        base: Any = super()
        found: tuple[Any, Request] = base._target(request, streaming=streaming)
        provider, _ = found
        if not isinstance(provider.transport, Transport):
            provider.transport = Transport(provider.transport)
        return found

    async def complete(self, request: Request) -> Response:
        """A complete answer.

        Raises:
            StreamAssemblyError: the answer is truncated.
        """
        response = await super().complete(request)
        if not _is_finished(as_object(response.provider_data) or {}):
            raise StreamAssemblyError("The answer is truncated: it has no finish reason.")
        return response

    async def stream(self, request: Request) -> AsyncGenerator[Any]:
        """The events of an answer.

        Raises:
            StreamAssemblyError: the answer is truncated.
        """
        async with aclosing(super().stream(request)) as events:
            async for event in events:
                if event.type == "end" and event.finish_reason is None:
                    raise StreamAssemblyError("The answer is truncated: it has no finish reason.")
                yield event


def _is_finished(body: dict[str, Any]) -> bool:
    """Whether a body has a finish reason; bodies of protocols other than OpenAI's pass."""
    if (choices := as_array(body.get("choices"))) is not None:
        return any((as_object(each) or {}).get("finish_reason") for each in choices)
    return body.get("object") != "response" or body.get("status") not in UNFINISHED


class Model:
    """A DSPy model with the connections to its provider.

    It gets explicit connections because DSPy downloads a price list for a model that creates them
    itself. Its cache and retries are off: the log stores results, and the engine retries.
    """

    def __init__(self, name: str, config: RouterConfig) -> None:
        self.name = name
        self._connections = CheckedConnections(config)
        self.lm = LM(
            name,
            engine=LM15Engine(config),
            async_engine=self._connections,
            cache=False,
            num_retries=0,
        )

    async def aclose(self) -> None:
        """Close the connections to the provider."""
        await self._connections.aclose()


class DspyModels:
    """The models of one engine.

    A name includes the provider, as in `openai:gpt-5`, unless all models share one `base_url`. With
    `keep_open`, connections stay open until `aclose`.
    """

    def __init__(
        self, base_url: str | None, api_key: str | None, timeout: float, *, keep_open: bool
    ) -> None:
        self._base_url = base_url
        self._api_key = api_key or ("none" if base_url else None)
        self._timeouts = Timeouts(read=timeout, write=timeout)
        self._kept: dict[str, Model] | None = {} if keep_open else None

    @asynccontextmanager
    async def open(self, name: str) -> AsyncGenerator[Model]:
        """Open a model for one call.

        Raises:
            UsageError: the model is unknown, or its provider is not configured.
        """
        if self._kept is None:
            async with aclosing(self.create(name)) as model:
                yield model
            return
        if name not in self._kept:
            self._kept[name] = self.create(name)
        yield self._kept[name]

    async def aclose(self) -> None:
        """Close the connections to providers."""
        while self._kept:
            await self._kept.popitem()[1].aclose()

    def create(self, name: str) -> Model:
        """Create a model without connecting to its provider.

        Raises:
            UsageError: the model is unknown, or its provider is not configured.
        """
        routed = name if self._base_url is None else f"{COMPATIBLE}:{name}"
        try:
            return Model(routed, self._config(routed))
        except LM15Error as error:
            raise UsageError(f"Cannot use model {name!r}. {_reason(error)}") from error

    def _config(self, name: str) -> RouterConfig:
        """How to reach a model's provider: by the engine's arguments, or else by the
        environment."""
        router = LM15Engine(RouterConfig())
        found = router.resolve(name)
        if self._api_key is None:
            router.router.lm(f"{found.provider}:{found.model}")  # raises if its key is missing
        family = found.provider.partition("-")[0].upper()
        url = self._base_url or os.environ.get(f"{family}_BASE_URL")
        return RouterConfig(
            api_keys={found.provider: self._api_key} if self._api_key else None,
            base_urls={found.provider: url} if url else None,
            timeouts=self._timeouts,
        )


def model_name(task: Task, default: str | None) -> str:
    """The name of the model to call for a task.

    Raises:
        UsageError: neither the agent nor the engine names one.
    """
    if name := task.model or default:
        return name
    raise UsageError(
        "No model is configured. Set `model` for the agent or the orchestrator, as in "
        "'openai:gpt-5', or pass one to the engine."
    )


# The name of an environment variable in a message.
_VARIABLE = re.compile(r"\b[A-Z]+(?:_[A-Z]+)+\b")


def _reason(error: LM15Error) -> str:
    """Why a model cannot be used, without DSPy's advice."""
    if isinstance(error, NotConfiguredError) and error.env_keys:
        return unset(*error.env_keys)
    if isinstance(error, UnknownModelError):
        return "DSPy does not know its provider. Name one, as in 'openai:gpt-5'."
    words = str(error).splitlines()[0]
    variables = _VARIABLE.findall(words)
    return unset(*variables) if variables else words
