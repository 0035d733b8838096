"""Tasks as requests of AutoGen, and its responses as answers."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from turnloom.agents.logic.dialogues import (
    Called,
    OthersMessage,
    Own,
    Part,
    Returned,
    added_to,
    dialogue_of,
    read_arguments,
)
from turnloom.agents.logic.endings import Ending, stop_of
from turnloom.agents.logic.outputs.forms import form_of, given_output
from turnloom.agents.spec import Answer, Task, ToolCall, Usage
from turnloom.kernel.values import as_data, as_object


class Response(NamedTuple):
    """A client's response: a text or a message with tool calls, its usage, its model, and its
    ending."""

    message: Any
    usage: Any
    model: str
    ending: Ending


def request_of(task: Task, names: Mapping[str, str]) -> dict[str, Any]:
    """The request for a task; `names` maps tools to the names that the provider accepts.

    The client's cache is off, since the log stores answers. So are its prices, which cover few
    models and warn about others.
    """
    system = [{"role": "system", "content": task.system}] if task.system else []
    messages = [*system, *messages_of(dialogue_of(task, names))]
    return {"messages": messages, **request_options(task, names)}


def request_options(
    task: Task, names: Mapping[str, str], own: Sequence[Mapping[str, Any]] = ()
) -> dict[str, Any]:
    """The options of a request: its output schema, and its tools, with the agent's `own` tools."""
    asked: dict[str, Any] = {
        "stream": task.output is None,  # a partial output is of no use
        "cache_seed": None,
        "price": [0.0, 0.0],
    }
    if task.tools or own:
        asked["tools"] = [
            *own,
            *(
                _function(names[each.name], each.description, each.parameters)
                for each in task.tools
            ),
        ]
    if task.output is not None:
        asked["response_format"] = form_of(task.output)
    return asked


def _function(name: str, description: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    form = {"name": name, "description": description, "parameters": parameters}
    return {"type": "function", "function": form}


def messages_of(parts: Iterable[Part]) -> list[dict[str, Any]]:
    """Messages of OpenAI's protocol."""
    found: list[dict[str, Any]] = []
    for part in parts:
        match part:
            case Own(text):
                found.append({"role": "assistant", "content": text})
            case OthersMessage(text):
                found.append({"role": "user", "content": text})
            case Called(id, name, arguments):
                function = {"name": name, "arguments": as_data(arguments)}
                call = {"id": id, "type": "function", "function": function}
                _calling_message(found)["tool_calls"].append(call)
            case Returned(id, name, text):
                found.append({"role": "tool", "tool_call_id": id, "name": name, "content": text})
    return found


def _calling_message(found: list[dict[str, Any]]) -> dict[str, Any]:
    """The model's message to which a tool call belongs: its last text, or a new one without
    text."""
    if not found or found[-1]["role"] != "assistant":
        found.append({"role": "assistant", "content": None})
    found[-1].setdefault("tool_calls", [])
    return found[-1]


def answer_of(task: Task, names: Mapping[str, str], response: Response) -> Answer:
    """The answer in a response: text, tool calls and output."""
    text, calls = read_message(response.message, names)
    output = None if calls or task.output is None else given_output(task.output, text)
    ending, usage = response.ending, usage_of(response)
    answer = Answer(text, usage, calls, output, model=response.model, added=added_to(task))
    return with_stop(answer, ending)


def with_stop(answer: Answer, ending: Ending) -> Answer:
    """An answer with its stop reason."""
    refusal = ending.refusal
    stop = stop_of(ending.reason, calls=bool(answer.calls), refusal=refusal)
    text = answer.text or refusal
    return msgspec.structs.replace(answer, text=text, stop=stop, refusal=refusal)


def read_message(message: Any, names: Mapping[str, str]) -> tuple[str, tuple[ToolCall, ...]]:
    """The text and tool calls of a message; `names` maps tools to the provider's names."""
    data = _data(message)
    tools = {plain: name for name, plain in names.items()}
    calls = tuple(_call(call, tools) for call in data.get("tool_calls") or ())
    return str(data.get("content") or ""), calls


def usage_of(response: Response) -> Usage:
    """The token usage of a response."""
    used = response.usage
    given, taken = _field(used, "prompt_tokens_details"), _field(used, "completion_tokens_details")
    return Usage(
        int(_field(used, "prompt_tokens") or 0),
        int(_field(used, "completion_tokens") or 0),
        cached_tokens=int(_field(given, "cached_tokens") or 0),
        reasoning_tokens=int(_field(taken, "reasoning_tokens") or 0),
    )


def _call(call: Mapping[str, Any], tools: Mapping[str, str]) -> ToolCall:
    name: str = call["function"]["name"]
    return ToolCall(
        tools.get(name, name), read_arguments(call["function"]["arguments"]), call.get("id") or ""
    )


def _data(message: Any) -> Mapping[str, Any]:
    """A message as data: clients and agents return texts, mappings, models or None."""
    if message is None or isinstance(message, str):
        return {"content": message}
    return as_object(message) or message.model_dump()


def _field(usage: Any, name: str) -> Any:
    """A number of tokens, or details of one; clients return mappings or models."""
    given = as_object(usage)
    return given.get(name) if given is not None else getattr(usage, name, None)
