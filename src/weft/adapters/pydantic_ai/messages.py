"""Tasks as messages to a model."""

from collections.abc import Mapping
from itertools import groupby
from operator import attrgetter
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

from weft.agents.logic.dialogue import Called, Gave, Part, Said, dialogue
from weft.agents.spec import Task


def messages_of(task: Task, names: Mapping[str, str]) -> list[ModelMessage]:
    """What the model is shown: side by side in a message as long as the same side speaks.

    `names` says how tools are called there.
    """
    found: list[ModelMessage] = []
    for is_own, parts in groupby(dialogue(task, names), attrgetter("is_own")):
        told: list[Any] = [_told(part) for part in parts]
        found.append(ModelResponse(told) if is_own else ModelRequest(told))
    last = found[-1]
    assert isinstance(last, ModelRequest)
    last.instructions = task.system or None
    return found


def _told(part: Part) -> ModelRequestPart | ModelResponsePart:
    match part:
        case Said(text, is_own):
            return TextPart(text) if is_own else UserPromptPart(text)
        case Called(id, name, arguments):
            return ToolCallPart(name, arguments, tool_call_id=id)
        case Gave(id, name, text, is_error):
            outcome = "failed" if is_error else "success"
            return ToolReturnPart(name, text, tool_call_id=id, outcome=outcome)
