"""Tasks as AG2 events."""

from collections.abc import Iterable, Mapping
from itertools import groupby

from ag2.events import (
    BaseEvent,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextInput,
    ToolCallEvent,
    ToolCallsEvent,
    ToolResult,
    ToolResultEvent,
    ToolResultsEvent,
)

from turnloom.agents.logic.dialogues import Called, OthersMessage, Own, Part, Returned, dialogue_of
from turnloom.agents.spec import Task
from turnloom.kernel.values import as_data


def messages_of(task: Task, names: Mapping[str, str]) -> list[BaseEvent]:
    """The messages for a task; `names` maps tools to the names that the provider accepts."""
    return [_event(kind, [*parts]) for kind, parts in groupby(dialogue_of(task, names), _kind)]


def _kind(part: Part) -> type[BaseEvent]:
    """The type of event that holds a part."""
    match part:
        case Own() | Called():
            return ModelResponse
        case OthersMessage():
            return ModelRequest
        case Returned():
            return ToolResultsEvent


def _event(kind: type[BaseEvent], parts: list[Part]) -> BaseEvent:
    if kind is ModelRequest:
        return ModelRequest(
            [TextInput(part.text) for part in parts if isinstance(part, OthersMessage)]
        )
    if kind is ToolResultsEvent:
        return ToolResultsEvent([_result(part) for part in parts if isinstance(part, Returned)])
    return _response(parts)


def _response(parts: Iterable[Part]) -> ModelResponse:
    """The model's text and tool calls as one response."""
    words: list[str] = []
    calls: list[ToolCallEvent] = []
    for part in parts:
        if isinstance(part, Own):
            words.append(part.text)
        elif isinstance(part, Called):
            data = as_data(part.arguments)
            calls.append(ToolCallEvent(part.name, id=part.id, arguments=data))
    message = ModelMessage("\n\n".join(words)) if words else None
    return ModelResponse(message, tool_calls=ToolCallsEvent(calls))


def _result(part: Returned) -> ToolResultEvent:
    return ToolResultEvent(parent_id=part.id, name=part.name, result=ToolResult(part.text))
