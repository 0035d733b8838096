"""Tasks as requests to a model, and responses of a model as answers."""

from collections.abc import Iterator
from typing import Any, Literal

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
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.tools import ToolDefinition

from weft.agents.spec import USER, WORKFLOW, Answer, Exchange, OutputSchema, Task, ToolCall, Usage
from weft.assembly.spec import Message
from weft.kernel.values import as_data

# What a model is told when nobody has spoken since it did: providers want a word from a user.
GO_ON = "Go on."

# The tool that a model gives its output to when its provider has no other way for that.
OUTPUT = "final_result"


def messages_of(task: Task) -> list[ModelMessage]:
    """What the model is shown: what was said, by whom, and what came of this turn's calls."""
    found: list[ModelMessage] = []
    for message in task.transcript:
        _add(found, _said(task.agent, message))
    for number, exchange in enumerate(task.exchanges):
        for part in _exchanged(exchange, number):
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


def _exchanged(exchange: Exchange, number: int) -> Iterator[ModelRequestPart | ModelResponsePart]:
    """What the model said in an earlier call of the turn, and what came of it."""
    if exchange.text:
        yield TextPart(exchange.text)
    ids = [call.id or f"call_{number}_{n}" for n, call in enumerate(exchange.calls)]
    for call, id in zip(exchange.calls, ids, strict=True):
        yield ToolCallPart(call.tool, call.arguments, tool_call_id=id)
    for call, id, result in zip(exchange.calls, ids, exchange.results, strict=True):
        if result.error:
            yield ToolReturnPart(call.tool, result.error, tool_call_id=id, outcome="failed")
        else:
            told = result.value if isinstance(result.value, str) else as_data(result.value)
            yield ToolReturnPart(call.tool, told, tool_call_id=id)
    if exchange.problem:
        yield UserPromptPart(f"That is not what was asked for. {exchange.problem}\nAnswer again.")


def _add(found: list[ModelMessage], part: Any) -> None:
    """Put a part behind the others: side by side in a message as long as the same side speaks."""
    kind = "response" if isinstance(part, TextPart | ToolCallPart) else "request"
    if not found or found[-1].kind != kind:
        found.append(ModelResponse([]) if kind == "response" else ModelRequest([]))
    parts: list[Any] = [*found[-1].parts, part]
    found[-1].parts = parts


def parameters_of(task: Task, model: Model) -> ModelRequestParameters:
    """The tools that the model may call, and the form that its answer is to have."""
    tools = [_tool(tool.name, tool.parameters, tool.description) for tool in task.tools]
    if task.output is None:
        return ModelRequestParameters(function_tools=tools)
    return _formed(tools, task.output, model)


def _formed(
    tools: list[ToolDefinition], output: OutputSchema, model: Model
) -> ModelRequestParameters:
    """Parameters that ask for an output: in the provider's own way, or by a tool that takes it."""
    schema: dict[str, Any] = output.schema
    if model.profile.get("supports_json_schema_output"):
        return ModelRequestParameters(
            function_tools=tools,
            output_mode="native",
            output_object=OutputObjectDefinition(schema, output.name),
        )
    taking = _tool(OUTPUT, schema, f"Takes the answer: {output.name}.", "output")
    return ModelRequestParameters(
        function_tools=tools, output_mode="tool", output_tools=[taking], allow_text_output=True
    )


def _tool(
    name: str,
    parameters: dict[str, Any],
    description: str,
    kind: Literal["function", "output"] = "function",
) -> ToolDefinition:
    return ToolDefinition(
        name=name,
        parameters_json_schema=parameters,
        description=description or None,
        kind=kind,
    )


def answer_of(response: ModelResponse) -> Answer:
    """What a response says, calls and gives."""
    text = "".join(part.content for part in response.parts if isinstance(part, TextPart))
    called = [part for part in response.parts if isinstance(part, ToolCallPart)]
    calls = tuple(
        ToolCall(part.tool_name, part.args_as_dict(), part.tool_call_id)
        for part in called
        if part.tool_name != OUTPUT
    )
    given = [part.args_as_dict() for part in called if part.tool_name == OUTPUT]
    used = response.usage
    usage = Usage(used.input_tokens, used.output_tokens)
    return Answer(text, usage, calls, given[0] if given and not calls else None)
