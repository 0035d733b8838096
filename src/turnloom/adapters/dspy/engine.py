"""Engine that calls models through DSPy, one request per model call of a turn."""

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from itertools import groupby
from typing import Any

from dspy import LM, context
from dspy.lm15 import (
    Config,
    DataPart,
    FunctionTool,
    Message,
    RefusalPart,
    Request,
    Response,
    Role,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from dspy.utils.exceptions import (
    ContextWindowExceededError,
    LMBillingError,
    LMError,
    LMProviderError,
    LMStreamAssemblyError,
    is_retryable_lm_error,
)

from turnloom.adapters.dspy.models import DspyModels, model_name
from turnloom.agents.logic import model_errors
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
from turnloom.agents.logic.endings import Ending, noting, stop_of
from turnloom.agents.logic.outputs.forms import form_of, given_output
from turnloom.agents.service.patience import attempts
from turnloom.agents.spec import Answer, Patience, Task, ToolCall, ToolSchema, Usage
from turnloom.errors import ContextTooLarge, EngineError, TurnloomError
from turnloom.kernel.values import Json, as_data, as_object

# Advice for users of DSPy that DSPy appends to a provider's error message.
_ADVICE = re.compile(r"\n\n  (credential came from|To fix):.*", re.DOTALL)

# Part of DSPy's error message for a stream event above its size limit.
OVERSIZED = "exceeds limit ("


async def ask(model: LM, request: Request, sink: Any = None) -> Response:
    """Send one request and stream the answer to `sink`; keep it out of DSPy's history.

    Raises:
        LMError: the model fails or refuses the request.
        TimeoutError: the model sent nothing in time.
    """
    with context(send_stream=sink, disable_history=True):
        try:
            return await model.acall(request)
        except LMError as error:
            if _is_timeout(error):
                raise TimeoutError from error
            raise


def _is_timeout(error: BaseException | None) -> bool:
    """Whether a timeout caused the error; DSPy has no error class for timeouts."""
    return error is not None and (isinstance(error, TimeoutError) or _is_timeout(error.__cause__))


def is_oversized(error: LMError) -> bool:
    """Whether a stream event exceeds DSPy's limits: 64 KiB per line, 1 MiB in total."""
    return OVERSIZED in str(error)


def is_transient(error: BaseException) -> bool:
    """Whether a retry of the same request may succeed. Broken streams count as transient."""
    if isinstance(error, LMBillingError) or model_errors.is_untrusted(error):
        return False
    is_cut = isinstance(error, LMStreamAssemblyError | TimeoutError)
    is_known = isinstance(error, Exception) and is_retryable_lm_error(error)
    # Errors in the middle of a stream carry no HTTP status.
    is_late = type(error) is LMProviderError
    if (status := model_errors.status_of(error)) is not None:
        return is_known or model_errors.passes(status)
    return is_cut or is_late or is_known or model_errors.is_garbled(error)


def failure(error: BaseException, model: str, tried: int, patience: Patience) -> TurnloomError:
    """The error to raise for a failed call: the provider's message without DSPy's advice."""
    known = isinstance(error, ContextWindowExceededError) or model_errors.is_too_large(error)
    kind = ContextTooLarge if known else EngineError
    return kind(_ADVICE.sub("", model_errors.failure_message(error, model, tried, patience)))


def describe(error: BaseException, patience: Patience) -> str:
    """How a model failed: the provider's message without DSPy's advice."""
    return _ADVICE.sub("", model_errors.describe(error, patience))


# The key under which DSPy returns arguments that are not valid JSON.
UNREAD = "partial_json"

# The key under which DSPy returns arguments that are not a JSON object.
WRAPPED = "value"


def request_of(task: Task, names: Mapping[str, str], model: str, config: Config) -> Request:
    """The request for a task; `names` maps tools to the names that the provider accepts."""
    tools = tuple(
        FunctionTool(names[tool.name], tool.description, tool.parameters) for tool in task.tools
    )
    messages = tuple(
        Message(role, tuple(map(_content, parts)))
        for role, parts in groupby(dialogue_of(task, names), _role)
    )
    return Request(model, messages, task.system or None, tools, _with_output_schema(task, config))


def _with_output_schema(task: Task, config: Config) -> Config:
    """The settings, with the schema of the output if the task has one."""
    if task.output is None:
        return config
    form = {"type": "json_schema", "name": task.output.name, "schema": form_of(task.output)}
    return replace(config, response_format=form)


def _role(part: Part) -> Role:
    """The role of the message that holds a part."""
    match part:
        case Own() | Called():
            return "assistant"
        case OthersMessage():
            return "user"
        case Returned():
            return "tool"


def _content(part: Part) -> TextPart | ToolCallPart | ToolResultPart:
    match part:
        case Own(text) | OthersMessage(text):
            return TextPart(text)
        case Called(id, name, arguments):
            return ToolCallPart(id, name, arguments)
        case Returned(id, name, text):
            return ToolResultPart(id, (TextPart(text),), name)


def answer_of(
    task: Task, names: Mapping[str, str], model: str, response: Response, ending: Ending
) -> Answer:
    """The answer in a response: text, tool calls and output."""
    tools = {plain: name for name, plain in names.items()}
    schemas = {tool.name: tool for tool in task.tools}
    called = [part for part in response.message.parts if isinstance(part, ToolCallPart)]
    calls = tuple(
        ToolCall(name, _arguments(part.input, schemas.get(name)), part.id)
        for part in called
        for name in [tools.get(part.name, part.name)]
    )
    text, usage = text_of(response), usage_of(response, model)
    output = None if calls or task.output is None else given_output(task.output, text)
    refusal = ending.refusal or refusal_of(response)
    reason = ending.reason or response.finish_reason
    return Answer(
        text or refusal,
        usage,
        calls,
        output,
        model=model_of(response),
        added=added_to(task),
        stop=stop_of(reason, calls=bool(calls), refusal=refusal),
        refusal=refusal,
    )


def refusal_of(response: Response) -> str:
    """The reason of a refusal; empty if the model did not refuse."""
    parts = response.message.parts
    return "".join(part.text for part in parts if isinstance(part, RefusalPart))


def text_of(response: Response) -> str:
    """The text of a response, including refusals."""
    return "".join(map(_words, response.message.parts))


def usage_of(response: Response, model: str) -> Usage:
    """The tokens that a response used. DSPy keeps each provider's way to count: some count cached
    input or reasoning apart."""
    used = response.usage
    provider = model.partition("/")[0]
    usage = Usage(
        used.input_tokens or 0,
        used.output_tokens or 0,
        used.cache_read_tokens or 0,
        used.cache_write_tokens or 0,
        reasoning_tokens=used.reasoning_tokens or 0,
    )
    return usage.joined(
        cache_apart="anthropic" in provider,
        reasoning_apart=provider in ("gemini", "vertex", "vertex-express", "xai"),
    )


def _words(part: Any) -> str:
    """The text of a part. DSPy decodes structured answers itself, so their data is encoded
    again."""
    match part:
        case TextPart(text) | RefusalPart(text):
            return text
        case DataPart(value):
            return as_data(value)
        case _:
            return ""


def _arguments(given: Mapping[str, Any], tool: ToolSchema | None) -> dict[str, Json]:
    """The arguments of a call; invalid JSON and non-objects look the same as from other engines."""
    ((key, only), *more) = given.items() if given else [("", None)]
    if more or not given:
        return read_arguments(given)
    if key == UNREAD and isinstance(only, str):
        return read_arguments(only)
    known = as_object(tool.parameters.get("properties")) if tool else None
    is_wrapped = key == WRAPPED and not isinstance(only, dict) and WRAPPED not in (known or {})
    return read_arguments(json.dumps(only) if is_wrapped else given)


def model_of(response: Response) -> str:
    """The model that answered. For streams, DSPy's own field names the requested model."""
    model_name = (as_object(response.provider_data) or {}).get("model")
    return model_name if isinstance(model_name, str) and model_name else response.model


class DSPyEngine:
    """Calls the model of the agent, or else the default model.

    Model names include the provider, as in `openai:gpt-5`. With `base_url`, every model is on that
    one server, which speaks OpenAI's protocol. `settings` apply to each request. With `keep_open`,
    connections stay open between calls, until `aclose`.
    """

    def __init__(
        self,
        model: str | None = None,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        settings: Config | None = None,
        patience: Patience | None = None,
        keep_open: bool = False,
    ) -> None:
        self._default = model
        self._settings = settings or Config()
        self._patience = patience or Patience()
        self._models = DspyModels(base_url, api_key, self._patience.timeout, keep_open=keep_open)
        if model is not None:
            self._models.create(model)  # reports a missing key before a run starts

    async def __call__(self, task: Task) -> Answer:
        """The model's answer to a task; transient failures are retried.

        Raises:
            ContextTooLarge: the task exceeds the model's context window.
            EngineError: the model fails or refuses the request.
            UsageError: the model is unknown, or none is configured.
        """
        name = model_name(task, self._default)
        names = spelled(tool.name for tool in task.tools)
        trying = attempts(task, self._patience, is_transient, describe)
        async with self._models.open(name) as model:
            request = request_of(task, names, model.name, self._settings)
            try:
                asked: tuple[Response, Ending] = await trying(
                    partial(_ask, task, model.lm, request)
                )
            except (LMError, TimeoutError) as error:
                tried = trying.statistics["attempt_number"]
                raise failure(error, name, tried, self._patience) from error
        return answer_of(task, names, name, *asked)

    async def aclose(self) -> None:
        """Close the connections to providers."""
        await self._models.aclose()


class _StreamSink:
    """Sends text deltas to the task, in place of a DSPy stream."""

    def __init__(self, task: Task) -> None:
        self._say = task.say
        self._streams = task.output is None  # a partial output is of no use

    async def send(self, chunk: Any) -> None:
        """Forward one chunk."""
        words = chunk.choices[0].delta.content
        if words and self._streams:
            self._say(words)


async def _ask(task: Task, model: LM, request: Request) -> tuple[Response, Ending]:
    """Send one request and stream its answer. If an event exceeds DSPy's limits, repeat the request
    without streaming."""
    task.say(None)
    ending = noting()
    try:
        return await ask(model, request, _StreamSink(task)), ending
    except LMError as error:
        if not is_oversized(error):
            raise
    task.say(None)
    ending = noting()
    return await ask(model, request), ending
