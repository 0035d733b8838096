"""What a model may call and how it is to answer, and its responses as answers."""

from collections.abc import Mapping

from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.tools import ToolDefinition

from weft.agents.logic.outputs.forms import object_form, with_output
from weft.agents.spec import Answer, Task, ToolCall, Usage

# The tool that a model gives its output to when its provider has no other way for that.
OUTPUT = "final_result"


def parameters_of(task: Task, names: Mapping[str, str], model: Model) -> ModelRequestParameters:
    """The tools that the model may call, and the form that its answer is to have: asked for in the
    provider's own way, or by a tool that takes it."""
    tools = [
        ToolDefinition(
            name=names[tool.name],
            parameters_json_schema=tool.parameters,
            description=tool.description or None,
        )
        for tool in task.tools
    ]
    if task.output is None:
        return ModelRequestParameters(function_tools=tools)
    schema, name = object_form(task.output), task.output.name
    if model.profile.get("supports_json_schema_output"):
        form = OutputObjectDefinition(schema, name)
        return ModelRequestParameters(
            function_tools=tools, output_mode="native", output_object=form
        )
    taking = ToolDefinition(
        name=OUTPUT,
        parameters_json_schema=schema,
        description=f"Takes the answer: {name}.",
        kind="output",
    )
    return ModelRequestParameters(function_tools=tools, output_mode="tool", output_tools=[taking])


def answer_of(task: Task, names: Mapping[str, str], response: ModelResponse) -> Answer:
    """What a response says, calls and gives."""
    text = "".join(part.content for part in response.parts if isinstance(part, TextPart))
    usage = Usage(response.usage.input_tokens, response.usage.output_tokens)
    called = [part for part in response.parts if isinstance(part, ToolCallPart)]
    tools = {plain: name for name, plain in names.items()}
    calls = tuple(
        ToolCall(tools.get(part.tool_name, part.tool_name), part.args_as_dict(), part.tool_call_id)
        for part in called
        if part.tool_name != OUTPUT or OUTPUT in tools
    )
    if calls or task.output is None:
        return Answer(text, usage, calls)
    given = [part.args_as_dict() for part in called]
    return with_output(task.output, Answer(text, usage), given[0] if given else None)
