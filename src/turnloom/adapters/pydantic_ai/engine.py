"""An engine that asks models through Pydantic AI, one request for each call of a turn."""

from contextlib import AsyncExitStack
from functools import partial

import anyio
from pydantic_ai.direct import model_request_stream
from pydantic_ai.exceptions import (
    ContentFilterError,
    ModelAPIError,
    ModelConnectionError,
    ModelContextWindowExceededError,
    ModelQuotaExceededError,
    ModelRateLimitError,
    ModelServerError,
    ModelUnavailableError,
    UnexpectedModelBehavior,
)
from pydantic_ai.messages import (
    ModelMessage,
    ModelResponse,
    ModelResponseStreamEvent,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
)
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.settings import ModelSettings

from turnloom.adapters.pydantic_ai.forms import answer_of, parameters_of
from turnloom.adapters.pydantic_ai.messages import messages_of
from turnloom.adapters.pydantic_ai.naming import Models
from turnloom.agents.logic.spelling import spelled
from turnloom.agents.logic.trouble import failure, is_garbled, is_untrusted, passes, status_of, told
from turnloom.agents.service.patience import attempts
from turnloom.agents.spec import Answer, Patience, Task
from turnloom.errors import ContextTooLarge

# What may be gone when the same request is made again.
PASSING = (
    ModelConnectionError,
    ModelRateLimitError,
    ModelServerError,
    ModelUnavailableError,
    TimeoutError,
    UnexpectedModelBehavior,
)

# The models of OpenAI's protocols, the one among their providers that never says how an answer
# ended, and where Pydantic AI keeps what the others say about it.
ENDING = (OpenAIChatModel, OpenAIResponsesModel)
ENDLESS = "snowflake"
END = "finish_reason"
ENDINGS = {END, "refusal"}
UNENDED = ("", "cancelled", "failed", "in_progress", "queued")


class PydanticAIEngine:
    """Asks the model that the agent names, or else this one.

    Models are named with their provider, as in `openai:gpt-5`; with `base_url`, they are those of
    one server that speaks OpenAI's protocol. `settings` go into each request. With `keep_open`,
    connections stay open between calls, until `aclose`.
    """

    def __init__(
        self,
        model: str | Model | None = None,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        settings: ModelSettings | None = None,
        patience: Patience | None = None,
        keep_open: bool = False,
    ) -> None:
        self._models = Models(model, base_url, api_key)
        self._settings = settings or ModelSettings()
        self._patience = patience or Patience()
        self._kept = AsyncExitStack() if keep_open else None
        self._entered: set[int] = set()

    async def __call__(self, task: Task) -> Answer:
        """What the model says to the task, asked again after trouble that may pass.

        Raises:
            ContextTooLarge: the task does not fit into the window of the model.
            EngineError: it does not answer, or refuses to.
            UsageError: no model is named, or there is none of that name.
        """
        model = self._models.named(task.model)
        await self._keep(model)
        names = spelled(tool.name for tool in task.tools)
        messages, parameters = messages_of(task, names), parameters_of(task, names, model)
        trying = attempts(self._patience, _may_pass)
        try:
            async with model:
                ask = partial(self._ask, task, model, messages, parameters)
                response: ModelResponse = await trying(ask)
        except (ModelAPIError, UnexpectedModelBehavior, TimeoutError) as error:
            tried = trying.statistics["attempt_number"]
            if isinstance(error, ModelContextWindowExceededError):  # a stream has no status
                message = told(error, model.model_name, tried, self._patience)
                raise ContextTooLarge(message) from error
            raise failure(error, model.model_name, tried, self._patience) from error
        return answer_of(task, names, response, model)

    def context_window(self, model: str | None) -> int | None:
        """How many tokens fit into the window of a model, as far as Pydantic AI knows it."""
        return self._models.named(model).context_window

    async def aclose(self) -> None:
        """Part from the providers."""
        if self._kept is not None:
            self._entered.clear()
            await self._kept.aclose()

    async def _keep(self, model: Model) -> None:
        if self._kept is not None and id(model) not in self._entered:
            self._entered.add(id(model))
            await self._kept.enter_async_context(model)

    async def _ask(
        self,
        task: Task,
        model: Model,
        messages: list[ModelMessage],
        parameters: ModelRequestParameters,
    ) -> ModelResponse:
        """One request, heard while it is answered."""
        task.say(None)
        request = model_request_stream(
            model,
            messages,
            model_settings=_alone(model, self._settings),
            model_request_parameters=parameters,
        )
        with anyio.fail_after(self._patience.timeout) as waiting:
            async with request as response:
                async for event in response:
                    waiting.deadline = anyio.current_time() + self._patience.timeout
                    if task.output is None:  # nobody reads half an output
                        task.say(_words(event))
        return _whole(model, response.get())


def _whole(model: Model, response: ModelResponse) -> ModelResponse:
    """The response, unless it was cut off: OpenAI says how one ended, which others that have models
    of their own need not.

    Raises:
        UnexpectedModelBehavior: it was.
    """
    details = response.provider_details or {}
    if _says_ends(model) and (not details.keys() & ENDINGS or details.get(END) in UNENDED):
        raise UnexpectedModelBehavior("The answer has no end.")
    return response


def _says_ends(model: Model) -> bool:
    while isinstance(model, WrapperModel):
        model = model.wrapped
    return isinstance(model, ENDING) and model.system != ENDLESS


def _alone(model: Model, settings: ModelSettings) -> ModelSettings:
    """The settings, without the client trying again by itself: two who do would try often."""
    if "max_retries" in model.unsupported_settings:
        return settings
    return settings | ModelSettings(max_retries=0)


def _may_pass(error: BaseException) -> bool:
    if isinstance(error, ContentFilterError | ModelQuotaExceededError) or is_untrusted(error):
        return False
    if (status := status_of(error)) is not None:
        return isinstance(error, PASSING) or passes(status)
    return isinstance(error, PASSING) or is_garbled(error)


def _words(event: ModelResponseStreamEvent) -> str:
    """What a piece of a response adds to its text."""
    match event:
        case PartStartEvent(part=TextPart(content=words)):
            return words
        case PartDeltaEvent(delta=TextPartDelta(content_delta=words)):
            return words
        case _:
            return ""
