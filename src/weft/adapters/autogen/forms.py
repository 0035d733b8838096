"""Tasks as requests of the classic line, and what comes back as answers."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from weft.agents.logic.dialogues import (
    Called,
    Heard,
    Own,
    Part,
    Returned,
    added_to,
    dialogue_of,
    read_arguments,
)
from weft.agents.logic.outputs.forms import form_of, given_output
from weft.agents.spec import Answer, Task, ToolCall, Usage
from weft.kernel.values import as_data, as_object


class Response(NamedTuple):
    """What a client got: a text or a message with calls, what it used, and whose it is."""

    message: Any
    usage: Any
    model: str


def request_of(task: Task, names: Mapping[str, str]) -> dict[str, Any]:
    """What a client is asked with; `names` says how tools are called there.

    The client's own cache is off, since the log holds the answers; so are its prices, which know
    few models and warn of the others.
    """
    system = [{"role": "system", "content": task.system}] if task.system else []
    asked: dict[str, Any] = {
        "messages": [*system, *_messages(dialogue_of(task, names))],
        "stream": task.output is None,  # nobody reads half an output
        "cache_seed": None,
        "price": [0.0, 0.0],
    }
    if task.tools:
        asked["tools"] = [
            _function(names[tool.name], tool.description, tool.parameters) for tool in task.tools
        ]
    if task.output is not None:
        asked["response_format"] = form_of(task.output)
    return asked


def _function(name: str, description: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    form = {"name": name, "description": description, "parameters": parameters}
    return {"type": "function", "function": form}


def _messages(parts: Iterable[Part]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for part in parts:
        match part:
            case Own(text):
                found.append({"role": "assistant", "content": text})
            case Heard(text):
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
    message, used = _data(response.message), response.usage
    text = str(message.get("content") or "")
    usage = Usage(_tokens(used, "prompt_tokens"), _tokens(used, "completion_tokens"))
    tools = {plain: name for name, plain in names.items()}
    calls = tuple(_call(call, tools) for call in message.get("tool_calls") or ())
    output = None if calls or task.output is None else given_output(task.output, text)
    return Answer(text, usage, calls, output, model=response.model, added=added_to(task))


def _call(call: Mapping[str, Any], tools: Mapping[str, str]) -> ToolCall:
    name: str = call["function"]["name"]
    return ToolCall(
        tools.get(name, name), read_arguments(call["function"]["arguments"]), call["id"]
    )


def _data(message: Any) -> Mapping[str, Any]:
    """A message as data: clients give texts, mappings or models."""
    if isinstance(message, str):
        return {"content": message}
    return as_object(message) or message.model_dump()


def _tokens(usage: Any, kind: str) -> int:
    """So many tokens of a kind; clients give mappings or models."""
    given = as_object(usage)
    return int((given.get(kind) if given is not None else getattr(usage, kind, None)) or 0)
