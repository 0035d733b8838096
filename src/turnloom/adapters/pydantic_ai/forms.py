"""What a model may call and how it is to answer, and its responses as answers."""

from collections.abc import Mapping

from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.tools import ToolDefinition

from turnloom.agents.logic.dialogues import added_to, read_arguments
from turnloom.agents.logic.endings import stop_of
from turnloom.agents.logic.outputs.forms import form_of, given_output
from turnloom.agents.spec import Answer, OutputSchema, Task, ToolCall, Usage

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
    schema = form_of(task.output)
    if _knows_forms(model):
        form = OutputObjectDefinition(schema, task.output.name)
        return ModelRequestParameters(
            function_tools=tools, output_mode="native", output_object=form
        )
    taking = ToolDefinition(
        name=OUTPUT,
        parameters_json_schema=schema,
        description=_purpose(task.output),
        kind="output",
    )
    return ModelRequestParameters(function_tools=tools, output_mode="tool", output_tools=[taking])


def _knows_forms(model: Model) -> bool:
    """Whether the provider has a way of its own to be told the form of an answer."""
    return bool(model.profile.get("supports_json_schema_output"))


def _purpose(output: OutputSchema) -> str:
    """What a model is told of the tool that takes its output."""
    return f"Takes the answer: {output.name}."


def answer_of(
    task: Task, names: Mapping[str, str], response: ModelResponse, model: Model
) -> Answer:
    """What a response of a model says, calls and gives."""
    text = "".join(part.content for part in response.parts if isinstance(part, TextPart))
    usage = Usage(response.usage.input_tokens, response.usage.output_tokens)
    called = [part for part in response.parts if isinstance(part, ToolCallPart)]
    tools = {plain: name for name, plain in names.items()}
    calls = tuple(
        _call(part, tools) for part in called if part.tool_name != OUTPUT or OUTPUT in tools
    )
    output = None
    if task.output is not None and not calls:
        given = [_call(part, tools).arguments for part in called]
        output = given_output(task.output, text, given[0] if given else None)
    refusal = str((response.provider_details or {}).get("refusal") or "")
    return Answer(
        text or refusal,
        usage,
        calls,
        output,
        model=response.model_name or model.model_name,
        added=_added(task, model),
        stop=stop_of(response.finish_reason, calls=bool(calls), refusal=refusal),
        refusal=refusal,
    )


def _call(part: ToolCallPart, tools: Mapping[str, str]) -> ToolCall:
    """A call, by the name that the run has for its tool."""
    name = tools.get(part.tool_name, part.tool_name)
    return ToolCall(name, read_arguments(part.args or ""), part.tool_call_id)


def _added(task: Task, model: Model) -> tuple[str, ...]:
    """What the model was shown beside the task."""
    if task.output is None or _knows_forms(model):
        return added_to(task)
    return (*added_to(task), OUTPUT, _purpose(task.output))
