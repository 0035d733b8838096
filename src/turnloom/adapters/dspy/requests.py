"""Tasks as requests to a model, and its responses as answers."""

import json
from collections.abc import Mapping
from dataclasses import replace
from itertools import groupby
from typing import Any

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

from turnloom.agents.logic.dialogues import (
    Called,
    Heard,
    Own,
    Part,
    Returned,
    added_to,
    dialogue_of,
    read_arguments,
)
from turnloom.agents.logic.endings import Ending, stop_of
from turnloom.agents.logic.outputs.forms import form_of, given_output
from turnloom.agents.spec import Answer, Task, ToolCall, ToolSchema, Usage
from turnloom.kernel.values import Json, as_data, as_object

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
        case Heard():
            return "user"
        case Returned():
            return "tool"


def _told(part: Part) -> TextPart | ToolCallPart | ToolResultPart:
    match part:
        case Own(text) | Heard(text):
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
