"""What a model may call and how it is to answer, and its responses as answers."""

from collections.abc import Mapping
from typing import NamedTuple

from ag2.events import ModelResponse
from ag2.response import ResponseSchema
from ag2.response.schema import RawSchema
from ag2.tools.final.function_tool import FunctionDefinition, FunctionToolSchema

from weft.agents.logic.dialogues import added_to, read_arguments
from weft.agents.logic.outputs.forms import form_of, given_output
from weft.agents.spec import Answer, Task, ToolCall, Usage


class Offer(NamedTuple):
    """The tools that a model may call, and the form that its answer is to have."""

    tools: list[FunctionToolSchema]
    form: RawSchema | None


def offer_of(task: Task, names: Mapping[str, str]) -> Offer:
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
        return Offer(tools, None)
    return Offer(tools, ResponseSchema.from_schema(form_of(task.output), task.output.name))


def answer_of(task: Task, names: Mapping[str, str], response: ModelResponse, model: str) -> Answer:
    """What a response of a model says, calls and gives."""
    text = response.content or ""
    used = response.usage
    usage = Usage(int(used.prompt_tokens or 0), int(used.completion_tokens or 0))
    tools = {plain: name for name, plain in names.items()}
    calls = tuple(
        ToolCall(tools.get(call.name, call.name), read_arguments(call.arguments), call.id)
        for call in response.tool_calls.calls
        if call.id or call.name  # else AG2 fills a gap in the numbers of a provider
    )
    output = None if calls or task.output is None else given_output(task.output, text)
    return Answer(text, usage, calls, output, model=model, added=added_to(task))
