"""Tools and output schemas for models, and their responses as answers."""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from ag2.events import (
    BaseEvent,
    DataInput,
    Input,
    ModelRequest,
    ModelResponse,
    TextInput,
    ToolCallEvent,
    ToolErrorEvent,
    ToolResultEvent,
    ToolResultsEvent,
    UsageEvent,
)
from ag2.response import ResponseSchema
from ag2.response.schema import RawSchema
from ag2.tools.final.function_tool import FunctionDefinition, FunctionToolSchema
from ag2.tools.schemas import ToolSchema

from turnloom.agents.logic.dialogues import UNREAD, added_to, plainly, read_arguments
from turnloom.agents.logic.endings import Ending, stop_of
from turnloom.agents.logic.outputs.forms import form_of, given_output
from turnloom.agents.spec import Answer, Exchange, Task, ToolCall, ToolResult, Usage
from turnloom.kernel.values import as_data


def tool_texts(schema: ToolSchema) -> Iterator[str]:
    """The texts of a tool, its name first; for a provider's built-in tool, its type."""
    if not isinstance(schema, FunctionToolSchema):
        yield schema.type
        return
    function = schema.function
    yield from (function.name, function.description, as_data(function.parameters))


def texts_of(event: BaseEvent) -> Iterator[str]:
    """The texts of an event: messages, tool calls and tool results."""
    match event:
        case ModelResponse():
            yield event.content or ""
            for call in event.tool_calls.calls:
                yield from (call.name, call.arguments)
        case ModelRequest():
            yield from map(text_of, event.parts)
        case ToolResultsEvent():
            for each in event.results:
                yield from map(text_of, each.result.parts)
        case _:
            pass  # other events are not shown to the model


def text_of(part: Input) -> str:
    """A part as text; empty for images and other media."""
    match part:
        case TextInput():
            return part.content
        case DataInput():
            return as_data(part.data)
        case _:
            return ""


# Providers, by their names in AG2, that always send a finish reason.
FINISH_PROVIDERS = frozenset(
    ("anthropic", "bedrock", "dashscope", "google", "mistral", "openai", "xai", "zai")
)

# Finish reasons of unfinished responses.
UNFINISHED = (None, "", "cancelled", "failed", "in_progress", "queued")


class OfferedTools(NamedTuple):
    """The tools that a model may call, and the schema of its output."""

    tools: list[FunctionToolSchema]
    form: RawSchema | None


def offer_of(task: Task, names: Mapping[str, str]) -> OfferedTools:
    """The tools and the output schema of a task."""
    tools = [
        FunctionToolSchema(
            FunctionDefinition(
                name=names[tool.name], description=tool.description, parameters=tool.parameters
            )
        )
        for tool in task.tools
    ]
    if task.output is None:
        return OfferedTools(tools, None)
    return OfferedTools(tools, ResponseSchema.from_schema(form_of(task.output), task.output.name))


def answer_of(
    task: Task, names: Mapping[str, str], response: ModelResponse, model: str, ending: Ending
) -> Answer:
    """The answer in a response: text, tool calls and output."""
    text = response.content or ending.refusal
    tools = {plain: name for name, plain in names.items()}
    calls = tuple(
        ToolCall(tools.get(call.name, call.name), read_arguments(call.arguments), call.id)
        for call in response.tool_calls.calls
        if call.id or call.name  # AG2 fills gaps in a provider's numbering with empty calls
    )
    output = None if calls or task.output is None else given_output(task.output, text)
    reason = ending.reason or response.finish_reason
    return Answer(
        text,
        usage_of(response),
        calls,
        output,
        model=model,
        added=added_to(task),
        stop=stop_of(reason, calls=bool(calls), refusal=ending.refusal),
        refusal=ending.refusal,
    )


def checked_response(response: ModelResponse, ending: Ending) -> ModelResponse:
    """The response, if it has a finish reason or its provider never sends one.

    Raises:
        EOFError: the response is truncated.
    """
    reason = response.finish_reason or ending.reason
    if response.provider in FINISH_PROVIDERS and reason in UNFINISHED:
        raise EOFError("The answer is truncated: it has no finish reason.")
    return response


def normalized(response: ModelResponse) -> ModelResponse:
    """A response in which tool calls have valid names, unique ids and JSON arguments, since an
    agent repeats them in its next request."""
    taken: set[str] = set()
    for number, call in enumerate(response.tool_calls.calls):
        if call.id or call.name:
            call.name = plainly(call.name)
            call.arguments = as_data(read_arguments(call.arguments))
            call.id = f"{call.id}_{number}" if call.id in taken else call.id
            taken.add(call.id)
    return response


def has_invalid_arguments(call: ToolCallEvent) -> bool:
    """Whether the arguments of a call are not valid JSON."""
    return read_arguments(call.arguments).keys() == {UNREAD}


def usage_of(spent: ModelResponse | UsageEvent) -> Usage:
    """Token usage. AG2 keeps each provider's way to count: some count cached input or reasoning
    apart."""
    if isinstance(spent, UsageEvent) and spent.parts:
        return sum(map(usage_of, spent.parts), Usage())
    used = spent.usage
    cached, written = int(used.cache_read_input_tokens or 0), used.cache_creation_input_tokens
    usage = Usage(
        int(used.prompt_tokens or 0),
        int(used.completion_tokens or 0),
        cached,
        int(written or 0),
        reasoning_tokens=int(used.thinking_tokens or 0),
    )
    return usage.joined(
        cache_apart=spent.provider in ("anthropic", "bedrock"),
        reasoning_apart=spent.provider == "google",
    )


def exchanges_of(
    responses: Iterable[ModelResponse], words: Iterable[str], results: Mapping[str, ToolResultEvent]
) -> tuple[Exchange, ...]:
    """The exchanges with the agent's own tools, for calls that have results."""
    found: list[Exchange] = []
    for response, text in zip(responses, words, strict=False):
        own = [call for call in response.tool_calls.calls if call.id in results]
        calls = [ToolCall(call.name, read_arguments(call.arguments), call.id) for call in own]
        given = [_result(results[call.id]) for call in own]
        found += [Exchange(text, tuple(calls), tuple(given))] if own else []
    return tuple(found)


def _result(event: ToolResultEvent) -> ToolResult:
    text = "\n".join(map(text_of, event.result.parts))
    return ToolResult(error=text) if isinstance(event, ToolErrorEvent) else ToolResult(text)
