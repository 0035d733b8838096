"""The model of an agent of AG2, asked as engines ask models: heard, with patience, on record."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import Any, Self, TypeVar, cast

import anyio
import msgspec
from ag2.config import LLMClient, ModelConfig
from ag2.config.config import ModelProvider
from ag2.context import ConversationContext
from ag2.events import BaseEvent, ModelMessageChunk, ModelResponse, ToolResultEvent, UsageEvent
from ag2.tools.final import ClientTool
from ag2.tools.schemas import ToolSchema

from turnloom.adapters.ag2.endings import tap
from turnloom.adapters.ag2.forms import exchanges_of, set_apart, usage_of, whole
from turnloom.adapters.ag2.showing import texts_of, tool_texts
from turnloom.agents.logic.dialogues import added_to
from turnloom.agents.logic.endings import Ending, noting
from turnloom.agents.logic.trouble import failure, may_pass
from turnloom.agents.service.patience import attempts
from turnloom.agents.spec import Answer, Patience, Task, Usage
from turnloom.errors import UsageError
from turnloom.kernel.digests import digest
from turnloom.kernel.values import as_data

T = TypeVar("T")


class Asked(ModelConfig):
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
        trying = attempts(self._patience, may_pass)
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
