"""Models by their names."""

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
from turnloom.agents.logic.trouble import unset
from turnloom.agents.spec import Task
from turnloom.errors import UsageError
from turnloom.kernel.values import as_array, as_object

# The provider that one server for all models is asked as: OpenAI's protocol that all speak.
COMPATIBLE = "openai-chat"


# The line by which a stream says that no more comes.
DONE = b"data: [DONE]"

# What an event begins with, and the words of those that say why an answer ended.
EVENT, INCOMPLETE = b"data: ", b"response.incomplete"
ENDINGS = (b"refusal", INCOMPLETE)

# What the newer protocol of OpenAI calls a response that has not come to its end.
UNENDED = ("cancelled", "failed", "in_progress", "queued")


class Transport:
    """A transport of DSPy whose streams end where they say so: DSPy waits until the other side
    closes the connection."""

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
    """A response, read up to the line that says that no more comes."""

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
                yield _noted(bytes(line))
                if line.rstrip() == DONE:
                    return
        if rest:
            yield bytes(rest)


def _noted(line: bytes) -> bytes:
    """A line of a stream, with what it says of the end of the answer noted.

    DSPy reads no refusal, and by the newer protocol of OpenAI no answer that was cut at its limit:
    that is shown to it as a whole one.
    """
    if not line.startswith(EVENT) or not any(word in line for word in ENDINGS):
        return line
    try:
        event = json.loads(line.removeprefix(EVENT), object_hook=lambda each: Namespace(**each))
    except ValueError:  # which DSPy tells
        return line
    note(event)
    is_cut = getattr(event, "type", "") == INCOMPLETE.decode()
    return line.replace(INCOMPLETE, b"response.completed", 1) if is_cut else line


class CheckedConnections(AsyncLM15Engine):
    """Connections to a provider that give an answer only if it says how it ended: DSPy takes one
    that was cut off for whole when the stream is closed properly."""

    def _target(self, request: Request, *, streaming: bool = False) -> Any:
        """Who is asked, by connections that end with the answer."""
        base: Any = super()
        found: tuple[Any, Request] = base._target(request, streaming=streaming)
        provider, _ = found
        if not isinstance(provider.transport, Transport):
            provider.transport = Transport(provider.transport)
        return found

    async def complete(self, request: Request) -> Response:
        """A whole answer.

        Raises:
            StreamAssemblyError: it has no end.
        """
        response = await super().complete(request)
        if not _is_ended(as_object(response.provider_data) or {}):
            raise StreamAssemblyError("The answer has no end.")
        return response

    async def stream(self, request: Request) -> AsyncGenerator[Any]:
        """The events of an answer.

        Raises:
            StreamAssemblyError: the last of them does not say how it ended.
        """
        async with aclosing(super().stream(request)) as events:
            async for event in events:
                if event.type == "end" and event.finish_reason is None:
                    raise StreamAssemblyError("The answer has no end.")
                yield event


def _is_ended(body: dict[str, Any]) -> bool:
    """Whether a body says how its answer ended; only protocols of OpenAI are read."""
    if (choices := as_array(body.get("choices"))) is not None:
        return any((as_object(each) or {}).get("finish_reason") for each in choices)
    return body.get("object") != "response" or body.get("status") not in UNENDED


class Model:
    """A model of DSPy, with the connections to its provider.

    It is given its connections, since DSPy would look up prices on the internet for one that makes
    its own. It remembers nothing and tries nothing again by itself: the log remembers, and two who
    try again would try often.
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
        """Part from the provider."""
        await self._connections.aclose()


class DspyModels:
    """The models that one engine asks, each waited for as long as `timeout` says.

    A name says its provider, as in `openai:gpt-5`, unless all are reached by one `base_url`. Those
    that are kept have their connections open until `aclose`.
    """

    def __init__(
        self, base_url: str | None, api_key: str | None, timeout: float, *, are_kept: bool
    ) -> None:
        self._base_url = base_url
        self._api_key = api_key or ("none" if base_url else None)
        self._timeouts = Timeouts(read=timeout, write=timeout)
        self._kept: dict[str, Model] | None = {} if are_kept else None

    @asynccontextmanager
    async def opened(self, name: str) -> AsyncGenerator[Model]:
        """A model for one call.

        Raises:
            UsageError: there is none of that name, or its provider cannot be asked.
        """
        if self._kept is None:
            async with aclosing(self.made(name)) as model:
                yield model
            return
        if name not in self._kept:
            self._kept[name] = self.made(name)
        yield self._kept[name]

    async def aclose(self) -> None:
        """Part from the providers."""
        while self._kept:
            await self._kept.popitem()[1].aclose()

    def made(self, name: str) -> Model:
        """A model that nobody has asked yet.

        Raises:
            UsageError: there is none of that name, or its provider cannot be asked.
        """
        routed = name if self._base_url is None else f"{COMPATIBLE}:{name}"
        try:
            return Model(routed, self._config(routed))
        except LM15Error as error:
            raise UsageError(f"Model {name!r} cannot be asked. {_reason(error)}") from error

    def _config(self, name: str) -> RouterConfig:
        """How the provider of a model is reached: as we are told, or as the environment says."""
        router = LM15Engine(RouterConfig())
        found = router.resolve(name)
        if self._api_key is None:
            router.router.lm(f"{found.provider}:{found.model}")  # its key is looked for
        family = found.provider.partition("-")[0].upper()
        url = self._base_url or os.environ.get(f"{family}_BASE_URL")
        return RouterConfig(
            api_keys={found.provider: self._api_key} if self._api_key else None,
            base_urls={found.provider: url} if url else None,
            timeouts=self._timeouts,
        )


def named(task: Task, default: str | None) -> str:
    """The model that is asked for a task.

    Raises:
        UsageError: neither its agent nor the engine names one.
    """
    if name := task.model or default:
        return name
    raise UsageError(
        "No model is named. Say `model` for the agent or the orchestrator, as in "
        "'openai:gpt-5', or give the engine one."
    )


# A variable of the environment in a sentence.
_VARIABLE = re.compile(r"\b[A-Z]+(?:_[A-Z]+)+\b")


def _reason(error: LM15Error) -> str:
    """Why a model cannot be asked, without advice that is DSPy's own."""
    if isinstance(error, NotConfiguredError) and error.env_keys:
        return unset(*error.env_keys)
    if isinstance(error, UnknownModelError):
        return "DSPy knows no provider for it. Name one, as in 'openai:gpt-5'."
    words = str(error).splitlines()[0]
    variables = _VARIABLE.findall(words)
    return unset(*variables) if variables else words
