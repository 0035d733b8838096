"""What a model may call and how it is to answer, and its responses as answers."""

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
)
from ag2.events import Usage as Used
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
    """What is said of a tool: its name first; of one of the provider's own, its kind."""
    if not isinstance(schema, FunctionToolSchema):
        yield schema.type
        return
    function = schema.function
    yield from (function.name, function.description, as_data(function.parameters))


def texts_of(event: BaseEvent) -> Iterator[str]:
    """What an event says: words, calls of tools, and what they gave."""
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
            pass  # what happened beside the conversation is not shown


def text_of(part: Input) -> str:
    """A part of what is shown, as text; of pictures and the like, nothing."""
    match part:
        case TextInput():
            return part.content
        case DataInput():
            return as_data(part.data)
        case _:
            return ""


# What AG2 calls the providers that always say how an answer ended.
ENDING = frozenset(
    ("anthropic", "bedrock", "dashscope", "google", "mistral", "openai", "xai", "zai")
)

# What stands in the place of an end in a response that has none.
UNENDED = (None, "", "cancelled", "failed", "in_progress", "queued")


class OfferedTools(NamedTuple):
    """The tools that a model may call, and the form that its answer is to have."""

    tools: list[FunctionToolSchema]
    form: RawSchema | None


def offer_of(task: Task, names: Mapping[str, str]) -> OfferedTools:
    """What the task lets a model call and asks it for."""
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
    """What a response of a model says, calls and gives."""
    text = response.content or ending.refusal
    tools = {plain: name for name, plain in names.items()}
    calls = tuple(
        ToolCall(tools.get(call.name, call.name), read_arguments(call.arguments), call.id)
        for call in response.tool_calls.calls
        if call.id or call.name  # else AG2 fills a gap in the numbers of a provider
    )
    output = None if calls or task.output is None else given_output(task.output, text)
    reason = ending.reason or response.finish_reason
    return Answer(
        text,
        usage_of(response.usage),
        calls,
        output,
        model=model,
        added=added_to(task),
        stop=stop_of(reason, calls=bool(calls), refusal=ending.refusal),
        refusal=ending.refusal,
    )


def whole(response: ModelResponse, ending: Ending) -> ModelResponse:
    """The response, if it says how it ended or its provider never does.

    Raises:
        EOFError: it was cut off, or holds no answer.
    """
    reason = response.finish_reason or ending.reason
    if response.provider in ENDING and reason in UNENDED:
        raise EOFError("The answer has no end.")
    return response


def set_apart(response: ModelResponse) -> ModelResponse:
    """A response whose calls have names that providers take, ids of their own and arguments that
    are data: an agent says them again, as they are, when its next request goes out."""
    taken: set[str] = set()
    for number, call in enumerate(response.tool_calls.calls):
        if call.id or call.name:
            call.name = plainly(call.name)
            call.arguments = as_data(read_arguments(call.arguments))
            call.id = f"{call.id}_{number}" if call.id in taken else call.id
            taken.add(call.id)
    return response


def is_unread(call: ToolCallEvent) -> bool:
    """Whether what the model wrote as the arguments of a call was no data."""
    return read_arguments(call.arguments).keys() == {UNREAD}


def usage_of(used: Used) -> Usage:
    """What was used, in our words."""
    return Usage(int(used.prompt_tokens or 0), int(used.completion_tokens or 0))


def exchanges_of(
    responses: Iterable[ModelResponse], words: Iterable[str], results: Mapping[str, ToolResultEvent]
) -> tuple[Exchange, ...]:
    """What an agent itself called with these words, as far as there are results of it."""
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
