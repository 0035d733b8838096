"""The view of an agent: what it is shown at a moment."""

from collections.abc import Sequence

from turnloom.agents.spec import (
    UNPREPARED,
    Agent,
    OutputSchema,
    PreparedRequest,
    RunState,
    ToolSchema,
)
from turnloom.assembly.events import Withheld
from turnloom.assembly.logic import View, apart, declared_piece, piece, rendered, spoken, view
from turnloom.assembly.spec import Message, Piece
from turnloom.kernel.values import as_data
from turnloom.variables.logic.exposure import ExposedText, VariableValues, expose, names_of
from turnloom.variables.spec import Variables


def view_of(
    agent: Agent,
    variables: Variables,
    state: RunState,
    tools: Sequence[ToolSchema] = (),
    output: OutputSchema | None = None,
    prepared: PreparedRequest = UNPREPARED,
) -> View:
    """The agent's view: its instructions, variables, tools and output schema, and what is
    withheld."""
    instruction = _instruction_piece(agent, prepared.instructions)
    beside = [*_messages(prepared.messages or (), prepared.left_by), *prepared.pieces]
    schemas = [*beside, *_tools(tools), *_output(output)]
    exposure = variables.exposures.get(agent.name)
    if exposure is None or not (exposure.template or exposure.variables):
        return view([instruction, *schemas], prepared.withheld)
    values = VariableValues(state.values, state.absent, variables.definitions)
    shown = list(expose(exposure, values))
    withheld = [*prepared.withheld] + [
        Withheld(variable_origin(each.variable), each.withheld, each.detail)
        for each in shown
        if each.withheld
    ]
    around = "heads the variables" if exposure.template is None else "stands around the variables"
    pieces = [_piece(agent, each, around) for each in shown if each.text]
    return view([*_placed(exposure.placement, instruction, pieces), *schemas], withheld)


def _instruction_piece(agent: Agent, instructions: str | None) -> Piece:
    if instructions is not None:
        return piece("instruction", f"hooks.{agent.name}", instructions, "as its hooks left them")
    return declared_piece(
        "instruction", f"agents.{agent.name}", agent.instructions, "its instructions"
    )


def _messages(messages: Sequence[Message], left_by: str) -> list[Piece]:
    why = f"as {left_by} left what was said"
    return [piece("message", left_by, spoken(each.author, each.text), why) for each in messages]


def _tools(tools: Sequence[ToolSchema]) -> list[Piece]:
    return [
        declared_piece("tool", f"tools.{t.name}", rendered(t), "offered to this agent")
        for t in tools
    ]


def _output(output: OutputSchema | None) -> list[Piece]:
    if output is None:
        return []
    origin = f"structured_outputs.{output.name}"
    return [declared_piece("output", origin, rendered(output), "the form of its answer")]


def digest_of(agent: str, variables: Variables, state: RunState) -> dict[str, str]:
    """A short preview of each variable that an agent may see."""
    exposure = variables.exposures.get(agent)
    found: dict[str, str] = {}
    for name in names_of(exposure) if exposure else ():
        definition = variables.definitions.get(name)
        limit = (definition and definition.max_chars) or DIGEST_CHARS
        value = state.values.get(name)
        text = "absent" if name not in state.values else as_data(value)
        if definition is not None and definition.secret and value is not None:
            text = "secret"  # a mark would become plain text in a tool's result
        found[name] = text if len(text) <= limit else f"{text[: limit - 1]}…"
    return found


# Characters of a value in a digest, unless its definition sets `max_chars`.
DIGEST_CHARS = 120


def _piece(agent: Agent, shown: ExposedText, around: str) -> Piece:
    if shown.variable is None:
        origin = f"context_variables.agents.{agent.name}"
        return piece("instruction", origin, shown.text, around)
    return piece("variable", variable_origin(shown.variable), shown.text, "exposed to this agent")


def variable_origin(name: str | None) -> str:
    """The origin of a variable's piece."""
    return f"context_variables.{name}"


def _placed(placement: str, instruction: Piece, pieces: list[Piece]) -> list[Piece]:
    """Instructions and variables in order; the second one carries the separator."""
    if not pieces:
        return [instruction]
    if placement == "replace":
        return pieces
    if placement == "prepend":
        return [*pieces, apart(instruction)] if instruction.text else pieces
    return [instruction, apart(pieces[0]), *pieces[1:]] if instruction.text else pieces
