"""Tasks as messages to a model."""

from collections.abc import Mapping
from typing import Any

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ModelResponsePart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from turnloom.agents.logic.dialogues import Called, Heard, Own, Part, Returned, dialogue_of
from turnloom.agents.spec import Task


def messages_of(task: Task, names: Mapping[str, str]) -> list[ModelMessage]:
    """What the model is shown; `names` says how tools are called there."""
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
        case Heard(text):
            return UserPromptPart(text)
        case Called(id, name, arguments):
            return ToolCallPart(name, arguments, tool_call_id=id)
        case Returned(id, name, text):
            return ToolReturnPart(name, text, tool_call_id=id)


def _add(found: list[ModelMessage], part: Any) -> None:
    """Put a part behind the others: side by side in a message as long as the same side speaks."""
    kind = "response" if isinstance(part, TextPart | ToolCallPart) else "request"
    if not found or found[-1].kind != kind:
        found.append(ModelResponse([]) if kind == "response" else ModelRequest([]))
    parts: list[Any] = [*found[-1].parts, part]
    found[-1].parts = parts
