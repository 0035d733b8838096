"""What a model may call and how it is to answer, and its responses as answers."""

from collections.abc import Mapping
from typing import Any

from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.tools import ToolDefinition

from weft.agents.logic.outputs.reading import read_output
from weft.agents.spec import Answer, OutputSchema, Task, ToolCall, Usage
from weft.kernel.values import Json, as_object

# The tool that a model gives its output to when its provider has no other way for that.
OUTPUT = "final_result"

# Where an output stands that is no object: providers take the forms of objects only.
INNER = "response"


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
    schema, name = _as_object(task.output), task.output.name
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


def _is_object(output: OutputSchema) -> bool:
    return (as_object(output.schema) or {}).get("type") == "object"


def _as_object(output: OutputSchema) -> dict[str, Any]:
    """The form of an output as that of an object, which holds it if it is none itself."""
    if _is_object(output):
        return output.schema
    form = dict(as_object(output.schema) or {})
    shared = {"$defs": form.pop("$defs")} if "$defs" in form else {}
    return {
        "type": "object",
        "properties": {INNER: form},
        "required": [INNER],
        "additionalProperties": False,
        **shared,
    }


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
    return _given(task.output, given[0] if given else None, Answer(text, usage))


def _given(output: OutputSchema, given: Json, answer: Answer) -> Answer:
    """The answer with its output; a text that is none is left to whoever checks it."""
    if given is None and _is_object(output):
        return answer
    try:
        value = read_output(answer.text) if given is None else given
    except ValueError:
        return answer
    if not _is_object(output):
        value = (as_object(value) or {}).get(INNER, value)
    return Answer(answer.text, answer.usage, output=value)
