"""An engine that asks models through AG2's clients, one request for each call of a turn."""

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
from turnloom.adapters.ag2.forms import OfferedTools, answer_of, offer_of, whole
from turnloom.adapters.ag2.messages import messages_of
from turnloom.agents.logic.dialogues import spelled
from turnloom.agents.logic.endings import Ending, noting
from turnloom.agents.logic.trouble import failure, may_pass
from turnloom.agents.service.patience import attempts
from turnloom.agents.spec import Answer, Patience, Task


class AG2Engine:
    """Asks the model that the agent names, or else this one.

    Models are named with their provider, as in `openai:gpt-5`, or are configurations of AG2; with
    `base_url`, they are those of one server that speaks OpenAI's protocol. With `keep_open`, a
    client is kept between calls, until `aclose`.
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
        """What the model says to the task, asked again after trouble that may pass.

        Raises:
            ContextTooLarge: the task does not fit into the window of the model.
            EngineError: it does not answer, or refuses to.
            UsageError: no model is named, or there is none of that name.
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
        """Part from the providers: clients that nobody keeps close by themselves."""
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
        """One request, heard while it is answered."""
        task.say(None)
        ending = noting()
        with anyio.fail_after(self._patience.timeout) as waiting:

            def hear(event: BaseEvent) -> None:
                waiting.deadline = anyio.current_time() + self._patience.timeout
                # Nobody reads half an output.
                if isinstance(event, ModelMessageChunk) and task.output is None:
                    task.say(event.content)

            response = await client(
                messages,
                ConversationContext(SingleListenerStream(hear), prompt=[task.system]),
                tools=offer.tools,
                response_schema=offer.form,
                serializer=PydanticSerializer(),
            )
        return whole(response, ending), ending


class SingleListenerStream(MemoryStream):
    """A stream that one function hears: to subscribe to one costs more than a whole request."""

    __slots__ = ("_hear",)

    def __init__(self, hear: Callable[[BaseEvent], None]) -> None:
        super().__init__()
        self._hear = hear

    def subscribe(self, func: Any = None, **how: Any) -> Any:
        """Take nobody else: every stream subscribes a history of its own when it is made."""
        return self.id

    async def send(self, event: BaseEvent, context: ConversationContext) -> None:
        """Let the function hear an event."""
        self._hear(event)
