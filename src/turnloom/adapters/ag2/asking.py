"""AG2 models: lookup by name, requests with retries, and how answers end."""

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
    checked_response,
    exchanges_of,
    normalized,
    texts_of,
    tool_texts,
    usage_of,
)
from turnloom.agents.logic.dialogues import added_to
from turnloom.agents.logic.endings import Ending, note, noting
from turnloom.agents.logic.model_errors import failure, may_pass, reason_of
from turnloom.agents.service.patience import attempts
from turnloom.agents.spec import Answer, Patience, Task, Usage
from turnloom.errors import UsageError
from turnloom.kernel.digests import digest
from turnloom.kernel.values import as_data


def note_endings(client: Any) -> Any:
    """Make an AG2 client note how its answers end, if it speaks one of OpenAI's protocols."""
    inner = getattr(client, "_client", None)
    for name in ("chat.completions", "responses"):
        asks: Any = inner
        for part in name.split("."):
            asks = getattr(asks, part, None)
        create = getattr(asks, "create", None)
        if create is not None and not hasattr(create, "is_noting"):
            asks.create = _with_notes(create)
    return client


def _with_notes(create: Any) -> Any:
    async def noted(**request: Any) -> Any:
        given = await create(**request)
        if hasattr(given, "_iterator"):  # a stream, which AG2 recognizes by its class
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
    """Model configuration for one task, which records the model's responses.

    `tools` are the task's, which the agent does not call itself; `offered` are their names. `given`
    are the task's messages as AG2 events.
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
        self.ending = Ending()  # of the last answer, unless it was recorded
        self._usage = Usage()
        self._added = dict.fromkeys(added_to(task))

    @property
    def provider(self) -> ModelProvider:
        """The provider of the model."""
        return self._config.provider

    @property
    def model(self) -> str:
        """The name of the model."""
        return self._config.model

    @property
    def answered(self) -> str:
        """The model that answered last, as the provider names it, or else the requested one."""
        last = self._responses[-1].model if self._responses else None
        return last or _name(self._config)

    def completed(self, answer: Answer) -> Answer:
        """The answer with the earlier exchanges, which an agent's reply does not contain."""
        words = [*(response.content or "" for response in self._responses), answer.text]
        if answer.calls:  # the reply has only the calls of the last response, not its text
            words[-2:] = ["", words[-2]]
        return msgspec.structs.replace(
            answer,
            text=words[-1],
            usage=self._usage,
            added=tuple(self._added),
            before=exchanges_of(self._responses, words, self._results),
        )

    def copy(self) -> Self:
        """This object: it serves one engine call."""
        return self

    def create(self) -> LLMClient:
        """The client of the model: this object."""
        self._client = note_endings(self._config.create())
        return self

    def create_files_client(self) -> Any:
        """A client for the provider's files."""
        return self._config.create_files_client()

    def on_event(self, event: BaseEvent) -> None:
        """Handle an event of the running agent."""
        if self._waiting is not None:
            self._waiting.deadline = anyio.current_time() + self._patience.timeout
        if isinstance(event, UsageEvent):
            self._usage += usage_of(event)
        elif isinstance(event, ToolResultEvent):
            self._results[event.parent_id] = event
        # A partial output is of no use.
        elif isinstance(event, ModelMessageChunk) and self.task.output is None:
            self.task.say(event.content)

    async def __call__(
        self,
        messages: Sequence[BaseEvent],
        context: ConversationContext,
        *,
        tools: Iterable[ToolSchema],
        **options: Any,
    ) -> ModelResponse:
        """The model's response; a recorded one if the call was repeated after a question."""
        listed = [*tools]
        later = [text for event in _not_in(messages, self.given) for text in texts_of(event)]
        self._show([*context.prompt], listed, later)
        ask = partial(self._ask, messages, context, tools=listed, **options)
        response = await (ask() if self.task.variables is None else self._once(ask, later))
        self._responses.append(response)
        return response

    async def _once(
        self, ask: Callable[[], Awaitable[ModelResponse]], later: Sequence[str]
    ) -> ModelResponse:
        """The recorded response, or a new one. If the agent's own tools returned something else
        this time, the request differs."""
        assert self.task.variables is not None

        async def effect() -> Any:
            return (await ask()).to_dict()

        after = f" after {digest(as_data(self.task.mask([*later])))}" if later else ""
        name = f"model {len(self._responses) + 1}{after}"
        kept: Any = await self.task.variables.once(name, effect)
        return cast("ModelResponse", ModelResponse.from_dict(kept))

    def _show(self, prompt: list[str], tools: Sequence[ToolSchema], later: Sequence[str]) -> None:
        """Record what the model is shown in addition to the task."""
        for schema in _not_in(self._offered, tools):
            raise UsageError(
                f"Tool {schema.function.name!r} exists both in the workflow and in the AG2 agent. "
                "Rename one of them."
            )
        texts = [text for text in prompt if text != self.task.system]
        for schema in _not_in(tools, self._offered):
            texts += tool_texts(schema)
        self._added |= dict.fromkeys(filter(None, (*texts, *later)))

    async def _ask(self, *arguments: Any, **options: Any) -> ModelResponse:
        """Send one request; transient failures are retried."""
        trying = attempts(self.task, self._patience, may_pass)
        try:
            return await trying(partial(self._request, *arguments, **options))
        except Exception as error:
            tried = trying.statistics["attempt_number"]
            name = _name(self._config)
            raise failure(error, name, tried, self._patience) from error

    async def _request(self, *arguments: Any, **options: Any) -> ModelResponse:
        assert self._client is not None
        self.task.say(None)
        try:
            with anyio.fail_after(self._patience.timeout) as self._waiting:
                self.ending = noting()
                return normalized(
                    checked_response(await self._client(*arguments, **options), self.ending)
                )
        finally:
            self._waiting = None


def _not_in(items: Sequence[T], known: Sequence[object]) -> list[T]:
    """The items that are not among the known ones, by identity."""
    ids = {id(each) for each in known}
    return [each for each in items if id(each) not in ids]


def _name(config: ModelConfig) -> str:
    """The name of a model; configurations for tests may have none."""
    try:
        return config.model
    except NotImplementedError:
        return type(config).__name__


# Provider prefixes of model names, and the AG2 configuration class of each.
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
    """The models of one engine. The default model is created at once.

    A name includes the provider, as in `openai:gpt-5`, unless all models share one `base_url`.
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
        """The configuration of the model with this name, or of the default model.

        Raises:
            UsageError: no model is configured, or its provider is unknown.
        """
        chosen = name or self._default
        if chosen is None:
            raise UsageError(
                "No model is configured. Set `model` for the agent or the orchestrator, as in "
                "'openai:gpt-5', or pass one to the engine."
            )
        return self._configured(chosen) if isinstance(chosen, str) else chosen

    def client(self, name: str | None) -> LLMClient:
        """A client for the model with this name.

        Raises:
            UsageError: the model is not configured.
        """
        config = self.named(name)
        try:
            return note_endings(config.create())
        except Exception as error:  # provider libraries raise any kind for missing settings
            chosen = name or self._default
            model = chosen if isinstance(chosen, str) else config.model
            raise UsageError(f"Cannot use model {model!r}. {reason_of(error)}") from error

    def _configured(self, name: str) -> ModelConfig:
        """A configuration that streams, with the client's own retries turned off: the engine
        retries."""
        provider, _, model = ("openai-chat", "", name) if self._common else name.partition(":")
        if provider not in PROVIDERS or not model:
            known = ", ".join(PROVIDERS)
            raise UsageError(
                f"Cannot use model {name!r}. Name its provider, as in 'openai:gpt-5'. Providers of "
                f"AG2: {known}."
            )
        wanted: dict[str, Any] = {"streaming": True, "max_retries": 0, **self._common}
        try:
            config: Any = getattr(configs, PROVIDERS[provider])(model=model)
        except ImportError as error:
            raise UsageError(f"Cannot use model {name!r}. {reason_of(error)}") from error
        return replace(config, **{key: wanted[key] for key in wanted if hasattr(config, key)})
