"""Engine that calls models through AG2's clients, one request per model call of a turn."""

from collections.abc import Callable
from functools import partial
from typing import Any

import anyio
from ag2.config import LLMClient, ModelConfig
from ag2.context import ConversationContext
from ag2.events import BaseEvent, ModelMessageChunk, ModelResponse
from ag2.stream import MemoryStream
from fast_depends.pydantic import PydanticSerializer

from turnloom.adapters.ag2.asking import Ag2Models
from turnloom.adapters.ag2.forms import OfferedTools, answer_of, checked_response, offer_of
from turnloom.adapters.ag2.messages import messages_of
from turnloom.agents.logic.dialogues import spelled
from turnloom.agents.logic.endings import Ending, noting
from turnloom.agents.logic.model_errors import failure, may_pass
from turnloom.agents.service.patience import attempts
from turnloom.agents.spec import Answer, Patience, Task


class AG2Engine:
    """Calls the model of the agent, or else the default model.

    A model is a name with its provider, as in `openai:gpt-5`, or a configuration of AG2. With
    `base_url`, every model is on that one server, which speaks OpenAI's protocol. With `keep_open`,
    clients are kept between calls, until `aclose`.
    """

    def __init__(
        self,
        model: str | ModelConfig | None = None,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        patience: Patience | None = None,
        keep_open: bool = False,
    ) -> None:
        self._models = Ag2Models(model, base_url, api_key)
        self._patience = patience or Patience()
        self._kept: dict[str | None, LLMClient] | None = {} if keep_open else None

    async def __call__(self, task: Task) -> Answer:
        """The model's answer to a task; transient failures are retried.

        Raises:
            ContextTooLarge: the task exceeds the model's context window.
            EngineError: the model fails or refuses the request.
            UsageError: the model is unknown, or none is configured.
        """
        client = self._client(task.model)
        names = spelled(tool.name for tool in task.tools)
        trying = attempts(task, self._patience, may_pass)
        try:
            ask = partial(self._ask, task, client, messages_of(task, names), offer_of(task, names))
            asked: tuple[ModelResponse, Ending] = await trying(ask)
        except Exception as error:
            tried = trying.statistics["attempt_number"]
            model = self._models.named(task.model).model
            raise failure(error, model, tried, self._patience) from error
        response, ending = asked
        model = response.model or self._models.named(task.model).model
        return answer_of(task, names, response, model, ending=ending)

    async def aclose(self) -> None:
        """Drop the clients, which then close by themselves."""
        if self._kept is not None:
            self._kept.clear()

    def _client(self, name: str | None) -> LLMClient:
        if self._kept is None:
            return self._models.client(name)
        if name not in self._kept:
            self._kept[name] = self._models.client(name)
        return self._kept[name]

    async def _ask(
        self, task: Task, client: LLMClient, messages: list[BaseEvent], offer: OfferedTools
    ) -> tuple[ModelResponse, Ending]:
        """Send one request and stream its answer."""
        task.say(None)
        ending = noting()
        with anyio.fail_after(self._patience.timeout) as waiting:

            def on_event(event: BaseEvent) -> None:
                waiting.deadline = anyio.current_time() + self._patience.timeout
                # A partial output is of no use.
                if isinstance(event, ModelMessageChunk) and task.output is None:
                    task.say(event.content)

            response = await client(
                messages,
                ConversationContext(SingleListenerStream(on_event), prompt=[task.system]),
                tools=offer.tools,
                response_schema=offer.form,
                serializer=PydanticSerializer(),
            )
        return checked_response(response, ending), ending


class SingleListenerStream(MemoryStream):
    """A stream with one listener: a subscription would cost more than the whole request."""

    __slots__ = ("_listener",)

    def __init__(self, on_event: Callable[[BaseEvent], None]) -> None:
        super().__init__()
        self._listener = on_event

    def subscribe(self, func: Any = None, **how: Any) -> Any:
        """Ignore subscribers: every stream subscribes its own history when it is created."""
        return self.id

    async def send(self, event: BaseEvent, context: ConversationContext) -> None:
        """Send an event to the listener."""
        self._listener(event)
