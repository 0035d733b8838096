"""Who answers: agents, what makes them answer, and what scripted ones say."""

from typing import Annotated

from pydantic import BeforeValidator, Field, model_validator

from turnloom.agents.spec.contexts import ContextChoices
from turnloom.kernel.models import Declared
from turnloom.kernel.values import Json

# Names that handoffs use for whoever is not an agent.
USER = "user"
TERMINATE = "terminate"
WORKFLOW = "workflow"

# Who picks the next speaker when a model is asked to; a script may have lines for it.
SELECTOR = "selector"


class PromptSection(Declared):
    """A headed part of an agent's instructions."""

    id: str = ""
    heading: str = ""
    content: str


class EngineChoice(Declared):
    """Which engine makes an agent answer, and where its script or function stands."""

    type: str
    file: str | None = None
    function: str | None = None


class ComponentChoice(Declared):
    """Where the function stands that makes a component."""

    file: str
    function: str


def _by_name(choice: Json) -> Json:
    """An engine that is given by its name alone."""
    return {"type": choice} if isinstance(choice, str) else choice


EngineChoices = tuple[
    Annotated[EngineChoice, BeforeValidator(_by_name, json_schema_input_type=EngineChoice | str)],
    ...,
]


class Agent(Declared):
    """Who answers: a name, its instructions, the tools it may use and the form of its answers."""

    name: str = Field(min_length=1)
    system_message: str | None = None
    prompt_sections: tuple[PromptSection, ...] = Field(default=(), strict=False)
    engine: Annotated[EngineChoice, BeforeValidator(_by_name)] | None = None
    engines: EngineChoices = Field(default=(), min_length=2, strict=False)
    model: str | None = Field(default=None, min_length=1)
    tools: tuple[str, ...] = Field(default=(), strict=False)
    max_tool_rounds: int = Field(default=8, ge=1)
    auto_tool_mode: bool = False
    structured_outputs: str | None = None
    structured_outputs_required: bool = True
    max_consecutive_auto_reply: int | None = Field(default=None, ge=1)
    context: ContextChoices = ()
    components: tuple[ComponentChoice, ...] = Field(default=(), strict=False)
    labels: tuple[Annotated[str, Field(min_length=1)], ...] = Field(default=(), strict=False)
    max_concurrency: int | None = Field(default=None, ge=1)

    @model_validator(mode="after")
    def _has_one_form_of_instructions(self) -> "Agent":
        if self.system_message is not None and self.prompt_sections:
            raise ValueError(
                f"Agent {self.name!r} has both `system_message` and `prompt_sections`. Keep one."
            )
        return self

    @model_validator(mode="after")
    def _says_once_who_answers(self) -> "Agent":
        if self.engine is not None and self.engines:
            raise ValueError(f"Agent {self.name!r} has both `engine` and `engines`. Keep one.")
        return self

    @model_validator(mode="after")
    def _has_each_label_once(self) -> "Agent":
        for label in self.labels:
            if self.labels.count(label) > 1:
                raise ValueError(f"Agent {self.name!r} has label {label!r} twice. Keep one.")
        return self

    @property
    def chain(self) -> tuple[EngineChoice, ...]:
        """The engines that are chosen for the agent, one after the other."""
        return (self.engine,) if self.engine is not None else self.engines

    @property
    def instructions(self) -> str:
        """What the agent is told before anything else."""
        if self.system_message is not None:
            return self.system_message
        sections = (f"{part.heading}\n{part.content}".strip() for part in self.prompt_sections)
        return "\n\n".join(sections)


class ScriptedCall(Declared):
    """A tool that a scripted agent calls."""

    tool: str = Field(min_length=1)
    arguments: dict[str, Json] = {}


class Line(Declared):
    """What a scripted agent says at one call: a text, the tools it calls, an output."""

    text: str = ""
    calls: tuple[ScriptedCall, ...] = Field(default=(), strict=False)
    output: Json = None


def _spoken(line: Json) -> Json:
    """A line that is given by its text alone."""
    return {"text": line} if isinstance(line, str) else line


Lines = Annotated[
    tuple[Annotated[Line, BeforeValidator(_spoken, json_schema_input_type=Line | str)], ...],
    Field(strict=False),
]


class ScriptedFunction(Declared):
    """A function that answers in the place of lines."""

    file: str
    function: str


class Script(Declared):
    """What scripted agents say, call by call or by a function, and what a scripted user answers.

    The agents that it `repeats` say their last line again, as often as they are asked."""

    agents: dict[str, Lines] = {}
    repeats: tuple[str, ...] = Field(default=(), strict=False)
    functions: dict[str, ScriptedFunction] = {}
    user: tuple[Json, ...] = Field(default=(), strict=False)
