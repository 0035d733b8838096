"""Tasks as messages to a model."""

from collections.abc import Iterator, Mapping
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

from weft.agents.spec import USER, WORKFLOW, Exchange, Task
from weft.assembly.spec import Message
from weft.kernel.values import as_data

# What a model is told when nobody has spoken since it did: providers want a word from a user.
GO_ON = "Go on."


def messages_of(task: Task, names: Mapping[str, str]) -> list[ModelMessage]:
    """What the model is shown: what was said, by whom, and what came of this turn's calls.

    `names` says how tools are called there.
    """
    found: list[ModelMessage] = []
    for message in task.transcript:
        _add(found, _said(task.agent, message))
    for number, exchange in enumerate(task.exchanges):
        for part in _exchanged(exchange, number, names):
            _add(found, part)
    if not found or isinstance(found[-1], ModelResponse):
        _add(found, UserPromptPart(GO_ON))
    last = found[-1]
    assert isinstance(last, ModelRequest)
    last.instructions = task.system or None
    return found


def _said(agent: str, message: Message) -> TextPart | UserPromptPart:
    """A message: the agent's own words, those of who is served, or another agent's by its name."""
    if message.author == agent:
        return TextPart(message.text)
    is_served = message.author in (USER, WORKFLOW)
    return UserPromptPart(message.text if is_served else f"{message.author}: {message.text}")


def _exchanged(
    exchange: Exchange, number: int, names: Mapping[str, str]
) -> Iterator[ModelRequestPart | ModelResponsePart]:
    """What the model said in an earlier call of the turn, and what came of it."""
    if exchange.text:
        yield TextPart(exchange.text)
    called = [
        (names.get(call.tool, call.tool), call.id or f"call_{number}_{n}")
        for n, call in enumerate(exchange.calls)
    ]
    for (name, id), call in zip(called, exchange.calls, strict=True):
        yield ToolCallPart(name, call.arguments, tool_call_id=id)
    for (name, id), result in zip(called, exchange.results, strict=True):
        if result.error:
            yield ToolReturnPart(name, result.error, tool_call_id=id, outcome="failed")
        else:
            told = result.value if isinstance(result.value, str) else as_data(result.value)
            yield ToolReturnPart(name, told, tool_call_id=id)
    if exchange.problem:
        yield UserPromptPart(f"That is not what was asked for. {exchange.problem}\nAnswer again.")


def _add(found: list[ModelMessage], part: Any) -> None:
    """Put a part behind the others: side by side in a message as long as the same side speaks."""
    kind = "response" if isinstance(part, TextPart | ToolCallPart) else "request"
    if not found or found[-1].kind != kind:
        found.append(ModelResponse([]) if kind == "response" else ModelRequest([]))
    parts: list[Any] = [*found[-1].parts, part]
    found[-1].parts = parts
