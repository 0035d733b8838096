"""What a model is shown by an agent of AG2, as texts."""

from collections.abc import Iterator

from ag2.events import (
    BaseEvent,
    DataInput,
    Input,
    ModelRequest,
    ModelResponse,
    TextInput,
    ToolResultsEvent,
)
from ag2.tools.final.function_tool import FunctionToolSchema
from ag2.tools.schemas import ToolSchema

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
