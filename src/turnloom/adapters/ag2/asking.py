"""Models of AG2: found by name, asked with patience, and how their answers end."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from typing import Any, Self, TypeVar, cast

import anyio
import msgspec
from ag2 import config as configs
from ag2.config import LLMClient, ModelConfig
from ag2.config.config import ModelProvider
from ag2.context import ConversationContext
from ag2.events import BaseEvent, ModelMessageChunk, ModelResponse, ToolResultEvent, UsageEvent
from ag2.tools.final import ClientTool
from ag2.tools.schemas import ToolSchema

from turnloom.adapters.ag2.forms import (
    exchanges_of,
    set_apart,
    texts_of,
    tool_texts,
    usage_of,
    whole,
)
from turnloom.agents.logic.dialogues import added_to
from turnloom.agents.logic.endings import Ending, note, noting
from turnloom.agents.logic.trouble import failure, may_pass, reason_of
from turnloom.agents.service.patience import attempts
from turnloom.agents.spec import Answer, Patience, Task, Usage
from turnloom.errors import UsageError
from turnloom.kernel.digests import digest
from turnloom.kernel.values import as_data


def tap(client: Any) -> Any:
    """A client of AG2 whose answers are noted, if it asks by one of OpenAI's protocols."""
    inner = getattr(client, "_client", None)
    for name in ("chat.completions", "responses"):
        asks: Any = inner
        for part in name.split("."):
            asks = getattr(asks, part, None)
        create = getattr(asks, "create", None)
        if create is not None and not hasattr(create, "is_noting"):
            asks.create = _noting(create)
    return client


def _noting(create: Any) -> Any:
    async def noted(**request: Any) -> Any:
        given = await create(**request)
        if hasattr(given, "_iterator"):  # a stream, which AG2 knows by its class
            given._iterator = _streamed(given._iterator)
        else:
            note(given)
        return given

    noted.is_noting = True  # pyright: ignore[reportFunctionMemberAccess]
    return noted


async def _streamed(pieces: Any) -> AsyncGenerator[Any]:
    async with aclosing(pieces):
        async for piece in pieces:
            note(piece)
            yield piece


T = TypeVar("T")


class AskedModel(ModelConfig):
    """A configuration whose model is asked for a task, and what came of that.

    `tools` are the task's, which the agent does not call itself, and `offered` their names; `given`
    is what the task says, as AG2 has it.
    """

    def __init__(
        self, task: Task, config: ModelConfig, tools: Iterable[ClientTool], patience: Patience
    ) -> None:
        self.task = task
        self.given: Sequence[BaseEvent] = ()
        self._config = config
        self._offered = [tool.schema for tool in tools]
        self.offered = frozenset(schema.function.name for schema in self._offered)
        self._patience = patience
        self._client: LLMClient | None = None
        self._waiting: anyio.CancelScope | None = None
        self._responses: list[ModelResponse] = []
        self._results: dict[str, ToolResultEvent] = {}
        self.ending = Ending()  # of the last answer, if it was asked for here
        self._usage = Usage()
        self._added = dict.fromkeys(added_to(task))

    @property
    def provider(self) -> ModelProvider:
        """Who has the model."""
        return self._config.provider

    @property
    def model(self) -> str:
        """What the model is called."""
        return self._config.model

    @property
    def answered(self) -> str:
        """The model that answered last, by its provider's word, else as it was asked for."""
        last = self._responses[-1].model if self._responses else None
        return last or _name(self._config)

    def completed(self, answer: Answer) -> Answer:
        """The answer with what came before it, which an agent's reply does not tell."""
        words = [*(response.content or "" for response in self._responses), answer.text]
        if answer.calls:  # the reply has the calls alone of what the model said at last
            words[-2:] = ["", words[-2]]
        return msgspec.structs.replace(
            answer,
            text=words[-1],
            usage=self._usage,
            added=tuple(self._added),
            before=exchanges_of(self._responses, words, self._results),
        )

    def copy(self) -> Self:
        """The same: it is for one call of an engine."""
        return self

    def create(self) -> LLMClient:
        """What asks the model: this."""
        self._client = tap(self._config.create())
        return self

    def create_files_client(self) -> Any:
        """What reaches files of the provider."""
        return self._config.create_files_client()

    def hear(self, event: BaseEvent) -> None:
        """Take note of something that happens while the agent works."""
        if self._waiting is not None:
            self._waiting.deadline = anyio.current_time() + self._patience.timeout
        if isinstance(event, UsageEvent):
            self._usage += usage_of(event.usage)
        elif isinstance(event, ToolResultEvent):
            self._results[event.parent_id] = event
        # Nobody reads half an output.
        elif isinstance(event, ModelMessageChunk) and self.task.output is None:
            self.task.say(event.content)

    async def __call__(
        self,
        messages: Sequence[BaseEvent],
        context: ConversationContext,
        *,
        tools: Iterable[ToolSchema],
        **how: Any,
    ) -> ModelResponse:
        """What the model says, from the record if it is there: the agent asked a person since."""
        listed = [*tools]
        later = [text for event in _beyond(messages, self.given) for text in texts_of(event)]
        self._show([*context.prompt], listed, later)
        ask = partial(self._ask, messages, context, tools=listed, **how)
        response = await (ask() if self.task.variables is None else self._once(ask, later))
        self._responses.append(response)
        return response

    async def _once(
        self, ask: Callable[[], Awaitable[ModelResponse]], later: Sequence[str]
    ) -> ModelResponse:
        """The response that is on record, or the one that is made now: if tools of the agent's own
        gave something else this time, it is another request."""
        assert self.task.variables is not None

        async def effect() -> Any:
            return (await ask()).to_dict()

        after = f" after {digest(as_data(self.task.mask([*later])))}" if later else ""
        name = f"model {len(self._responses) + 1}{after}"
        kept: Any = await self.task.variables.once(name, effect)
        return cast("ModelResponse", ModelResponse.from_dict(kept))

    def _show(self, prompt: list[str], tools: Sequence[ToolSchema], later: Sequence[str]) -> None:
        """Note what the model is shown beside the task."""
        for schema in _beyond(self._offered, tools):
            raise UsageError(
                f"Tool {schema.function.name!r} is the workflow's, and the agent of AG2 has one of "
                "that name too. Give one of them another name."
            )
        texts = [text for text in prompt if text != self.task.system]
        for schema in _beyond(tools, self._offered):
            texts += tool_texts(schema)
        self._added |= dict.fromkeys(filter(None, (*texts, *later)))

    async def _ask(self, *what: Any, **how: Any) -> ModelResponse:
        """One request, made again after trouble that may pass."""
        trying = attempts(self.task, self._patience, may_pass)
        try:
            return await trying(partial(self._request, *what, **how))
        except Exception as error:
            tried = trying.statistics["attempt_number"]
            name = _name(self._config)
            raise failure(error, name, tried, self._patience) from error

    async def _request(self, *what: Any, **how: Any) -> ModelResponse:
        assert self._client is not None
        self.task.say(None)
        try:
            with anyio.fail_after(self._patience.timeout) as self._waiting:
                self.ending = noting()
                return set_apart(whole(await self._client(*what, **how), self.ending))
        finally:
            self._waiting = None


def _beyond(items: Sequence[T], known: Sequence[object]) -> list[T]:
    """The items that are none of those known; what looks the same may be another."""
    ids = {id(each) for each in known}
    return [each for each in items if id(each) not in ids]


def _name(config: ModelConfig) -> str:
    """What a model is called; configurations for tests need not say it."""
    try:
        return config.model
    except NotImplementedError:
        return type(config).__name__


# The providers that names begin with, and what AG2 calls the configuration of each.
PROVIDERS = {
    "anthropic": "AnthropicConfig",
    "bedrock": "BedrockConfig",
    "dashscope": "DashScopeConfig",
    "gemini": "GeminiConfig",
    "mistral": "MistralConfig",
    "ollama": "OllamaConfig",
    "openai": "OpenAIResponsesConfig",
    "openai-chat": "OpenAIConfig",
    "vertexai": "VertexAIConfig",
    "xai": "XAIConfig",
    "zai": "ZAIConfig",
}


class Ag2Models:
    """The models that one engine asks, the default one looked for at once.

    A name says its provider, as in `openai:gpt-5`, unless all are reached by one `base_url`.
    """

    def __init__(
        self,
        default: str | ModelConfig | None,
        base_url: str | None = None,
        api_key: str | None = None,
    ) -> None:
        self._default = default
        self._common: dict[str, str] = {}
        if base_url is not None:
            self._common = {"base_url": base_url, "api_key": api_key or "none"}
        if default is not None:
            self.client(None)

    def named(self, name: str | None) -> ModelConfig:
        """The configuration of the model of that name, or of the one asked when none is named.

        Raises:
            UsageError: there is none, or its provider is not known.
        """
        chosen = name or self._default
        if chosen is None:
            raise UsageError(
                "No model is named. Say `model` for the agent or the orchestrator, as in "
                "'openai:gpt-5', or give the engine one."
            )
        return self._configured(chosen) if isinstance(chosen, str) else chosen

    def client(self, name: str | None) -> LLMClient:
        """What asks the model of that name.

        Raises:
            UsageError: it cannot be asked.
        """
        config = self.named(name)
        try:
            return tap(config.create())
        except Exception as error:  # whatever a provider's library says to a lack of settings
            chosen = name or self._default
            named = chosen if isinstance(chosen, str) else config.model
            raise UsageError(f"Model {named!r} cannot be asked. {reason_of(error)}") from error

    def _configured(self, name: str) -> ModelConfig:
        """A configuration that streams, and leaves trying again to us: two who do try often."""
        provider, _, model = ("openai-chat", "", name) if self._common else name.partition(":")
        if provider not in PROVIDERS or not model:
            known = ", ".join(PROVIDERS)
            raise UsageError(
                f"Model {name!r} cannot be asked. Say its provider, as in 'openai:gpt-5'. AG2 "
                f"knows: {known}."
            )
        wanted: dict[str, Any] = {"streaming": True, "max_retries": 0, **self._common}
        try:
            made: Any = getattr(configs, PROVIDERS[provider])(model=model)
        except ImportError as error:
            raise UsageError(f"Model {name!r} cannot be asked. {reason_of(error)}") from error
        return replace(made, **{key: wanted[key] for key in wanted if hasattr(made, key)})
