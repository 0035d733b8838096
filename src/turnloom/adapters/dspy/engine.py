"""An engine that asks models through DSPy, one request for each call of a turn."""

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

from turnloom.adapters.dspy.models import DspyModels, named
from turnloom.agents.logic import trouble
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

# What DSPy adds to the words of a provider, for those who ask by DSPy alone.
_ADVICE = re.compile(r"\n\n  (credential came from|To fix):.*", re.DOTALL)

# What DSPy says of events that it does not read.
OVERSIZED = "exceeds limit ("


async def ask(model: LM, request: Request, ear: Any = None) -> Response:
    """One request, heard by `ear` while it is answered; DSPy would keep what was shown in its
    history.

    Raises:
        LMError: the model does not answer, or refuses to.
        TimeoutError: it was silent.
    """
    with context(send_stream=ear, disable_history=True):
        try:
            return await model.acall(request)
        except LMError as error:
            if _is_silence(error):
                raise TimeoutError from error
            raise


def _is_silence(error: BaseException | None) -> bool:
    """Whether it began with a wait in vain: DSPy has no error of its own for that."""
    return error is not None and (isinstance(error, TimeoutError) or _is_silence(error.__cause__))


def is_oversized(error: LMError) -> bool:
    """Whether an event of a stream was longer than DSPy reads: 64 KiB a line, 1 MiB in all."""
    return OVERSIZED in str(error)


def may_pass(error: BaseException) -> bool:
    """Whether it may be gone when the same request is made again; a stream may have broken."""
    if isinstance(error, LMBillingError) or trouble.is_untrusted(error):
        return False
    is_cut = isinstance(error, LMStreamAssemblyError | TimeoutError)
    is_known = isinstance(error, Exception) and is_retryable_lm_error(error)
    # A provider that gives up in the middle of an answer has no status to say so.
    is_late = type(error) is LMProviderError
    if (status := trouble.status_of(error)) is not None:
        return is_known or trouble.passes(status)
    return is_cut or is_late or is_known or trouble.is_garbled(error)


def failure(error: BaseException, model: str, tried: int, patience: Patience) -> TurnloomError:
    """The error of a call whose model does not answer, in the provider's words and without DSPy's
    advice."""
    known = isinstance(error, ContextWindowExceededError) or trouble.is_too_large(error)
    kind = ContextTooLarge if known else EngineError
    return kind(_ADVICE.sub("", trouble.failure_message(error, model, tried, patience)))


def describe(error: BaseException, patience: Patience) -> str:
    """What a model did instead of answering, in the provider's words and without DSPy's advice."""
    return _ADVICE.sub("", trouble.describe(error, patience))


# What DSPy calls arguments that it could not read.
UNREAD = "partial_json"

# Under which name DSPy gives arguments that are data and no object.
WRAPPED = "value"


def request_of(task: Task, names: Mapping[str, str], model: str, config: Config) -> Request:
    """What the model is asked: `names` says how tools are called there."""
    tools = tuple(
        FunctionTool(names[tool.name], tool.description, tool.parameters) for tool in task.tools
    )
    messages = tuple(
        Message(role, tuple(map(_told, parts)))
        for role, parts in groupby(dialogue_of(task, names), _role)
    )
    return Request(model, messages, task.system or None, tools, _formed(task, config))


def _formed(task: Task, config: Config) -> Config:
    """The settings, with the form that the answer is to have."""
    if task.output is None:
        return config
    form = {"type": "json_schema", "name": task.output.name, "schema": form_of(task.output)}
    return replace(config, response_format=form)


def _role(part: Part) -> Role:
    """Whose a part is."""
    match part:
        case Own() | Called():
            return "assistant"
        case OthersMessage():
            return "user"
        case Returned():
            return "tool"


def _told(part: Part) -> TextPart | ToolCallPart | ToolResultPart:
    match part:
        case Own(text) | OthersMessage(text):
            return TextPart(text)
        case Called(id, name, arguments):
            return ToolCallPart(id, name, arguments)
        case Returned(id, name, text):
            return ToolResultPart(id, (TextPart(text),), name)


def answer_of(task: Task, names: Mapping[str, str], response: Response, ending: Ending) -> Answer:
    """What a response says, calls and gives."""
    tools = {plain: name for name, plain in names.items()}
    schemas = {tool.name: tool for tool in task.tools}
    called = [part for part in response.message.parts if isinstance(part, ToolCallPart)]
    calls = tuple(
        ToolCall(name, _arguments(part.input, schemas.get(name)), part.id)
        for part in called
        for name in [tools.get(part.name, part.name)]
    )
    text, usage = text_of(response), usage_of(response)
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
    """Why the model refused to answer, if it did."""
    parts = response.message.parts
    return "".join(part.text for part in parts if isinstance(part, RefusalPart))


def text_of(response: Response) -> str:
    """What a response says in words, also if it refuses to."""
    return "".join(map(_words, response.message.parts))


def usage_of(response: Response) -> Usage:
    """The tokens that a response took."""
    return Usage(response.usage.input_tokens or 0, response.usage.output_tokens or 0)


def _words(part: Any) -> str:
    """What a part of a response says; DSPy reads answers itself whose form has choices in it."""
    match part:
        case TextPart(text) | RefusalPart(text):
            return text
        case DataPart(value):
            return as_data(value)
        case _:
            return ""


def _arguments(given: Mapping[str, Any], tool: ToolSchema | None) -> dict[str, Json]:
    """The arguments of a call, those that are no data or no object as other engines have them."""
    ((key, only), *more) = given.items() if given else [("", None)]
    if more or not given:
        return read_arguments(given)
    if key == UNREAD and isinstance(only, str):
        return read_arguments(only)
    known = as_object(tool.parameters.get("properties")) if tool else None
    is_wrapped = key == WRAPPED and not isinstance(only, dict) and WRAPPED not in (known or {})
    return read_arguments(json.dumps(only) if is_wrapped else given)


def model_of(response: Response) -> str:
    """Who answered: where an answer came in pieces, DSPy itself may only say who was asked."""
    named = (as_object(response.provider_data) or {}).get("model")
    return named if isinstance(named, str) and named else response.model


class DSPyEngine:
    """Asks the model that the agent names, or else this one.

    Models are named with their provider, as in `openai:gpt-5`; with `base_url`, they are those of
    one server that speaks OpenAI's protocol. `settings` go into each request. With `keep_open`,
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
        self._models = DspyModels(base_url, api_key, self._patience.timeout, are_kept=keep_open)
        if model is not None:
            self._models.made(model)  # whether it can be asked shows before a run starts

    async def __call__(self, task: Task) -> Answer:
        """What the model says to the task, asked again after trouble that may pass.

        Raises:
            ContextTooLarge: the task does not fit into the window of the model.
            EngineError: it does not answer, or refuses to.
            UsageError: no model is named, or there is none of that name.
        """
        name = named(task, self._default)
        names = spelled(tool.name for tool in task.tools)
        trying = attempts(task, self._patience, may_pass, describe)
        async with self._models.opened(name) as model:
            request = request_of(task, names, model.name, self._settings)
            try:
                asked: tuple[Response, Ending] = await trying(
                    partial(_ask, task, model.lm, request)
                )
            except (LMError, TimeoutError) as error:
                tried = trying.statistics["attempt_number"]
                raise failure(error, name, tried, self._patience) from error
        return answer_of(task, names, *asked)

    async def aclose(self) -> None:
        """Part from the providers."""
        await self._models.aclose()


class _Ear:
    """Hears an answer while it is made, in the place of one of DSPy's streams."""

    def __init__(self, task: Task) -> None:
        self._say = task.say
        self._is_heard = task.output is None  # nobody reads half an output

    async def send(self, chunk: Any) -> None:
        """Take a piece."""
        words = chunk.choices[0].delta.content
        if words and self._is_heard:
            self._say(words)


async def _ask(task: Task, model: LM, request: Request) -> tuple[Response, Ending]:
    """One request, heard from its beginning while it is answered; one whose answer comes in larger
    pieces than DSPy reads is made again for a whole answer, which nobody hears."""
    task.say(None)
    ending = noting()
    try:
        return await ask(model, request, _Ear(task)), ending
    except LMError as error:
        if not is_oversized(error):
            raise
    task.say(None)
    ending = noting()
    return await ask(model, request), ending
