"""Tasks as requests of the classic line, and what comes back as answers."""

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
    """What a client got: a text or a message with calls, what it used, whose it is, and how it
    ended."""

    message: Any
    usage: Any
    model: str
    ending: Ending


def request_of(task: Task, names: Mapping[str, str]) -> dict[str, Any]:
    """What a client is asked with; `names` says how tools are called there.

    The client's own cache is off, since the log holds the answers; so are its prices, which know
    few models and warn of the others.
    """
    system = [{"role": "system", "content": task.system}] if task.system else []
    messages = [*system, *messages_of(dialogue_of(task, names))]
    return {"messages": messages, **demands_of(task, names)}


def demands_of(
    task: Task, names: Mapping[str, str], own: Sequence[Mapping[str, Any]] = ()
) -> dict[str, Any]:
    """What a task asks of an answer: its form, and the tools that may be called, also `own` ones of
    who asks."""
    asked: dict[str, Any] = {
        "stream": task.output is None,  # nobody reads half an output
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
    """What was said and called, as messages of OpenAI's protocol."""
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
                _calling(found)["tool_calls"].append(call)
            case Returned(id, name, text):
                found.append({"role": "tool", "tool_call_id": id, "name": name, "content": text})
    return found


def _calling(found: list[dict[str, Any]]) -> dict[str, Any]:
    """The message of the model that a call stands in: its last words, or one without any."""
    if not found or found[-1]["role"] != "assistant":
        found.append({"role": "assistant", "content": None})
    found[-1].setdefault("tool_calls", [])
    return found[-1]


def answer_of(task: Task, names: Mapping[str, str], response: Response) -> Answer:
    """What a response says, calls and gives."""
    text, calls = read_message(response.message, names)
    output = None if calls or task.output is None else given_output(task.output, text)
    ending, usage = response.ending, usage_of(response)
    answer = Answer(text, usage, calls, output, model=response.model, added=added_to(task))
    return ended(answer, ending)


def ended(answer: Answer, ending: Ending) -> Answer:
    """An answer with why it ended."""
    refusal = ending.refusal
    stop = stop_of(ending.reason, calls=bool(answer.calls), refusal=refusal)
    text = answer.text or refusal
    return msgspec.structs.replace(answer, text=text, stop=stop, refusal=refusal)


def read_message(message: Any, names: Mapping[str, str]) -> tuple[str, tuple[ToolCall, ...]]:
    """What a message says and calls; `names` says how tools are called there."""
    data = _data(message)
    tools = {plain: name for name, plain in names.items()}
    calls = tuple(_call(call, tools) for call in data.get("tool_calls") or ())
    return str(data.get("content") or ""), calls


def usage_of(response: Response) -> Usage:
    """What a response used."""
    used = response.usage
    return Usage(_tokens(used, "prompt_tokens"), _tokens(used, "completion_tokens"))


def _call(call: Mapping[str, Any], tools: Mapping[str, str]) -> ToolCall:
    name: str = call["function"]["name"]
    return ToolCall(
        tools.get(name, name), read_arguments(call["function"]["arguments"]), call.get("id") or ""
    )


def _data(message: Any) -> Mapping[str, Any]:
    """A message as data: clients and agents give texts, mappings, models or nothing."""
    if message is None or isinstance(message, str):
        return {"content": message}
    return as_object(message) or message.model_dump()


def _tokens(usage: Any, kind: str) -> int:
    """So many tokens of a kind; clients give mappings or models."""
    given = as_object(usage)
    return int((given.get(kind) if given is not None else getattr(usage, kind, None)) or 0)
