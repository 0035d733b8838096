"""Tasks as the events that AG2 shows to a model."""

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
    """What the model is shown; `names` says how tools are called there."""
    return [_event(kind, [*parts]) for kind, parts in groupby(dialogue_of(task, names), _kind)]


def _kind(part: Part) -> type[BaseEvent]:
    """What holds such a part, beside its neighbours."""
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
    """What the model said and called, as one response of it."""
    words: list[str] = []
    calls: list[ToolCallEvent] = []
    for part in parts:
        if isinstance(part, Own):
            words.append(part.text)
        elif isinstance(part, Called):
            data = as_data(part.arguments)
            calls.append(ToolCallEvent(part.name, id=part.id, arguments=data))
    said = ModelMessage("\n\n".join(words)) if words else None
    return ModelResponse(said, tool_calls=ToolCallsEvent(calls))


def _result(part: Returned) -> ToolResultEvent:
    return ToolResultEvent(parent_id=part.id, name=part.name, result=ToolResult(part.text))
