"""Engine that calls models through Pydantic AI, one request per model call of a turn."""

from collections.abc import Mapping
from contextlib import AsyncExitStack
from functools import partial
from typing import Any

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
    UserError,
)
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ModelResponsePart,
    ModelResponseStreamEvent,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import Model, ModelRequestParameters, infer_model, known_model_names
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.providers import infer_provider_class
from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

from turnloom.agents.logic.dialogues import (
    Called,
    OthersMessage,
    Own,
    Part,
    Returned,
    added_to,
    dialogue_of,
    read_arguments,
    spelled,
)
from turnloom.agents.logic.endings import stop_of
from turnloom.agents.logic.model_errors import (
    failure,
    failure_message,
    is_garbled,
    is_untrusted,
    passes,
    reason_of,
    status_of,
)
from turnloom.agents.logic.outputs.forms import form_of, given_output
from turnloom.agents.service.patience import attempts
from turnloom.agents.spec import Answer, OutputSchema, Patience, Task, ToolCall, Usage
from turnloom.errors import ContextTooLarge, UsageError
from turnloom.kernel.values import nearest

# The tool that receives the output if the provider has no native structured output.
OUTPUT = "final_result"


def parameters_of(task: Task, names: Mapping[str, str], model: Model) -> ModelRequestParameters:
    """The tools of a task, and its output schema: native, or as a tool."""
    tools = [
        ToolDefinition(
            name=names[tool.name],
            parameters_json_schema=tool.parameters,
            description=tool.description or None,
        )
        for tool in task.tools
    ]
    if task.output is None:
        return ModelRequestParameters(function_tools=tools)
    schema = form_of(task.output)
    if _has_native_output(model):
        form = OutputObjectDefinition(schema, task.output.name)
        return ModelRequestParameters(
            function_tools=tools, output_mode="native", output_object=form
        )
    output_tool = ToolDefinition(
        name=OUTPUT,
        parameters_json_schema=schema,
        description=_purpose(task.output),
        kind="output",
    )
    return ModelRequestParameters(
        function_tools=tools, output_mode="tool", output_tools=[output_tool]
    )


def _has_native_output(model: Model) -> bool:
    """Whether the provider has native structured output."""
    return bool(model.profile.get("supports_json_schema_output"))


def _purpose(output: OutputSchema) -> str:
    """The description of the output tool."""
    return f"Takes the answer: {output.name}."


def answer_of(
    task: Task, names: Mapping[str, str], response: ModelResponse, model: Model
) -> Answer:
    """The answer in a response: text, tool calls and output."""
    text = "".join(part.content for part in response.parts if isinstance(part, TextPart))
    used = response.usage
    usage = Usage(
        used.input_tokens,
        used.output_tokens,
        used.cache_read_tokens,
        used.cache_write_tokens,
        reasoning_tokens=used.output_reasoning_tokens,
    )
    called = [part for part in response.parts if isinstance(part, ToolCallPart)]
    tools = {plain: name for name, plain in names.items()}
    calls = tuple(
        _call(part, tools) for part in called if part.tool_name != OUTPUT or OUTPUT in tools
    )
    output = None
    if task.output is not None and not calls:
        given = [_call(part, tools).arguments for part in called]
        output = given_output(task.output, text, given[0] if given else None)
    refusal = str((response.provider_details or {}).get("refusal") or "")
    return Answer(
        text or refusal,
        usage,
        calls,
        output,
        model=response.model_name or model.model_name,
        added=_added(task, model),
        stop=stop_of(response.finish_reason, calls=bool(calls), refusal=refusal),
        refusal=refusal,
    )


def _call(part: ToolCallPart, tools: Mapping[str, str]) -> ToolCall:
    """A tool call, with the tool's name in the run."""
    name = tools.get(part.tool_name, part.tool_name)
    return ToolCall(name, read_arguments(part.args or ""), part.tool_call_id)


def _added(task: Task, model: Model) -> tuple[str, ...]:
    """What the model was shown in addition to the task."""
    if task.output is None or _has_native_output(model):
        return added_to(task)
    return (*added_to(task), OUTPUT, _purpose(task.output))


def messages_of(task: Task, names: Mapping[str, str]) -> list[ModelMessage]:
    """The messages for a task; `names` maps tools to the names that the provider accepts."""
    found: list[ModelMessage] = []
    for part in dialogue_of(task, names):
        _add(found, _part(part))
    last = found[-1]
    assert isinstance(last, ModelRequest)
    last.instructions = task.system or None
    return found


def _part(part: Part) -> ModelRequestPart | ModelResponsePart:
    match part:
        case Own(text):
            return TextPart(text)
        case OthersMessage(text):
            return UserPromptPart(text)
        case Called(id, name, arguments):
            return ToolCallPart(name, arguments, tool_call_id=id)
        case Returned(id, name, text):
            return ToolReturnPart(name, text, tool_call_id=id)


def _add(found: list[ModelMessage], part: Any) -> None:
    """Append a part, to the last message if that is from the same side."""
    kind = "response" if isinstance(part, TextPart | ToolCallPart) else "request"
    if not found or found[-1].kind != kind:
        found.append(ModelResponse([]) if kind == "response" else ModelRequest([]))
    parts: list[Any] = [*found[-1].parts, part]
    found[-1].parts = parts


class PydanticModels:
    """The models of one engine. The default model is created at once, others when first named.

    A name includes the provider, as in `openai:gpt-5`, unless all models share one `base_url`.
    """

    def __init__(
        self, default: str | Model | None, base_url: str | None = None, api_key: str | None = None
    ) -> None:
        self._default = default
        self._made: dict[str, Model] = {}
        self._make = infer_model
        if base_url is not None:
            provider = OpenAICompatibleProvider(
                "openai-compatible", base_url=base_url, api_key=api_key or "none"
            )
            self._make = partial(OpenAIChatModel, provider=provider)
        if default is not None:
            self.named(None)

    def named(self, name: str | None) -> Model:
        """The model with this name, or the default model.

        Raises:
            UsageError: the model is unknown, or its provider is not configured.
        """
        chosen = name or self._default
        if isinstance(chosen, Model):
            return chosen
        if chosen is None:
            raise UsageError(
                "No model is configured. Set `model` for the agent or the orchestrator, as in "
                "'openai:gpt-5', or pass one to the engine."
            )
        if chosen not in self._made:
            self._made[chosen] = self._open(chosen)
        return self._made[chosen]

    def _open(self, name: str) -> Model:
        make: Any = self._make
        try:
            return make(name)
        except (UserError, ImportError) as error:
            reason = _unknown_provider(name) or reason_of(error)
            raise UsageError(f"Cannot use model {name!r}. {reason}") from error


def _unknown_provider(name: str) -> str:
    """The message for a model name with a missing or unknown provider; else empty."""
    provider, _, model = name.partition(":")
    if not provider or not model:
        return "Name its provider, as in 'openai:gpt-5'."
    try:
        infer_provider_class(provider)
    except ValueError:
        known = sorted({each.partition(":")[0] for each in known_model_names()})
        near = nearest(provider, known)
        remedy = f"Did you mean '{near}:{model}'?" if near else f"Known: {', '.join(known)}."
        return f"Provider {provider!r} does not exist. {remedy}"
    except ImportError:  # the provider's package is not installed
        return ""
    return ""


# Errors after which a retry may succeed.
TRANSIENT = (
    ModelConnectionError,
    ModelRateLimitError,
    ModelServerError,
    ModelUnavailableError,
    TimeoutError,
    UnexpectedModelBehavior,
)

# Models of OpenAI's protocols, the provider among them that never sends a finish reason, and the
# keys under which Pydantic AI stores finish reasons and refusals.
ENDING = (OpenAIChatModel, OpenAIResponsesModel)
ENDLESS = "snowflake"
END = "finish_reason"
ENDINGS = {END, "refusal"}
UNFINISHED = ("", "cancelled", "failed", "in_progress", "queued")


class PydanticAIEngine:
    """Calls the model of the agent, or else the default model.

    Model names include the provider, as in `openai:gpt-5`. With `base_url`, every model is on that
    one server, which speaks OpenAI's protocol. `settings` apply to each request. With `keep_open`,
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
        self._models = PydanticModels(model, base_url, api_key)
        self._settings = settings or ModelSettings()
        self._patience = patience or Patience()
        self._kept = AsyncExitStack() if keep_open else None
        self._entered: set[int] = set()

    async def __call__(self, task: Task) -> Answer:
        """The model's answer to a task; transient failures are retried.

        Raises:
            ContextTooLarge: the task exceeds the model's context window.
            EngineError: the model fails or refuses the request.
            UsageError: the model is unknown, or none is configured.
        """
        model = self._models.named(task.model)
        await self._keep(model)
        names = spelled(tool.name for tool in task.tools)
        messages, parameters = messages_of(task, names), parameters_of(task, names, model)
        trying = attempts(task, self._patience, _is_transient)
        try:
            async with model:
                ask = partial(self._ask, task, model, messages, parameters)
                response: ModelResponse = await trying(ask)
        except (ModelAPIError, UnexpectedModelBehavior, TimeoutError) as error:
            tried = trying.statistics["attempt_number"]
            if isinstance(error, ModelContextWindowExceededError):  # streams carry no status
                message = failure_message(error, model.model_name, tried, self._patience)
                raise ContextTooLarge(message) from error
            raise failure(error, model.model_name, tried, self._patience) from error
        return answer_of(task, names, response, model)

    def context_window(self, model: str | None) -> int | None:
        """The context window of a model in tokens; None if Pydantic AI does not know it."""
        return self._models.named(model).context_window

    async def aclose(self) -> None:
        """Close the connections to providers."""
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
        """Send one request and stream its answer."""
        task.say(None)
        request = model_request_stream(
            model,
            messages,
            model_settings=_without_retries(model, self._settings),
            model_request_parameters=parameters,
        )
        with anyio.fail_after(self._patience.timeout) as waiting:
            async with request as response:
                async for event in response:
                    waiting.deadline = anyio.current_time() + self._patience.timeout
                    if task.output is None:  # a partial output is of no use
                        task.say(_words(event))
        return _checked(model, response.get())


def _checked(model: Model, response: ModelResponse) -> ModelResponse:
    """The response, unless it is truncated. Only OpenAI's protocols require a finish reason.

    Raises:
        UnexpectedModelBehavior: the response is truncated.
    """
    details = response.provider_details or {}
    if _reports_finish(model) and (not details.keys() & ENDINGS or details.get(END) in UNFINISHED):
        raise UnexpectedModelBehavior("The answer is truncated: it has no finish reason.")
    return response


def _reports_finish(model: Model) -> bool:
    while isinstance(model, WrapperModel):
        model = model.wrapped
    return isinstance(model, ENDING) and model.system != ENDLESS


def _without_retries(model: Model, settings: ModelSettings) -> ModelSettings:
    """The settings with the client's own retries turned off: the engine retries."""
    if "max_retries" in model.unsupported_settings:
        return settings
    return settings | ModelSettings(max_retries=0)


def _is_transient(error: BaseException) -> bool:
    if isinstance(error, ContentFilterError | ModelQuotaExceededError) or is_untrusted(error):
        return False
    if (status := status_of(error)) is not None:
        return isinstance(error, TRANSIENT) or passes(status)
    return isinstance(error, TRANSIENT) or is_garbled(error)


def _words(event: ModelResponseStreamEvent) -> str:
    """The text that a stream event adds."""
    match event:
        case PartStartEvent(part=TextPart(content=words)):
            return words
        case PartDeltaEvent(delta=TextPartDelta(content_delta=words)):
            return words
        case _:
            return ""
