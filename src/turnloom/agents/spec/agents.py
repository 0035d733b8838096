"""Agents, their engines, their declared context, and components."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated, Protocol, runtime_checkable

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from turnloom.agents.spec.tasks import Answer, Task
from turnloom.assembly.spec.formats import PLAIN, Fence, Order
from turnloom.assembly.spec.providers import TurnContext
from turnloom.board.spec import FilterConfig
from turnloom.kernel.models import Declared
from turnloom.kernel.values import Json, kind_of

# What a source can be.
KINDS = ("state", "retrieval", "literal", "variables", "provider", "filter", "history")


class RetrievalChoice(Declared):
    """What is looked for in a collection; the query has places for variables, and the value of a
    filter may be one of the state: `{state: path}`."""

    collection: str = Field(min_length=1)
    query: str
    top_k: int = Field(default=5, ge=1)
    min_relevance: float | None = Field(default=None, ge=0, le=1)
    filters: dict[str, Json] = {}


class HistoryChoice(Declared):
    """How much of what was said is shown; `summarise` is a function of `providers.py` that tells of
    the rest."""

    last: int | None = Field(default=None, ge=1)
    tokens: int | None = Field(default=None, ge=1)
    summarise: str | None = Field(default=None, min_length=1)


class ProviderChoice(Declared):
    """Who is asked for context: a provider by its name, or a filter of what is on the board."""

    provider: str | None = Field(default=None, min_length=1)
    filter: FilterConfig | None = None
    fallback: str | None = Field(default=None, min_length=1)
    timeout_s: float = Field(default=60.0, gt=0)
    config: dict[str, Json] = {}

    def _check_provider(self) -> None:
        """See that what goes with a provider goes with one."""
        if self.filter is not None and self.config:
            raise ValueError("`config` is what a provider is told, and a filter is none. Drop it.")
        if self.provider is not None or self.filter is not None:
            return
        idle = sorted({"fallback", "timeout_s", "config"} & self.model_fields_set)
        if idle:
            raise ValueError(f"{_quoted(idle)} would have no effect here. Drop it.")


class SourceChoice(ProviderChoice):
    """A source of context: exactly one of its kinds, and its share of the budget."""

    state: str | None = None
    retrieval: RetrievalChoice | None = None
    literal: str | None = None
    variables: tuple[str, ...] = Field(default=(), strict=False)
    history: HistoryChoice | None = None
    priority: int = 0
    min_tokens: int = Field(default=0, ge=0)
    title: str = ""

    @model_validator(mode="after")
    def _is_one_source(self) -> "SourceChoice":
        _check_one(self, KINDS, "A source")
        self._check_provider()
        return self

    @property
    def kind(self) -> str:
        """Which of its kinds it is."""
        return _given(self, KINDS)[0]


class BudgetChoice(Declared):
    """How many tokens all sources of an agent may come to."""

    max_tokens: int = Field(ge=1)


class FormatChoice(Declared):
    """How the context of an agent is written: a `ContextFormat`, key by key."""

    header: str = PLAIN.header
    separator: str = PLAIN.separator
    separators: dict[str, str] = {}
    templates: dict[str, str] = {}
    citation: str = PLAIN.citation
    fence: Fence = PLAIN.fence
    order: Order = PLAIN.order


class ContextChoice(ProviderChoice):
    """Who gives an agent context, or the sources that it is assembled from, in which budget and
    format."""

    sources: tuple[SourceChoice, ...] = Field(default=(), strict=False)
    budget: BudgetChoice | None = None
    format: FormatChoice | None = None

    @model_validator(mode="after")
    def _is_one_choice(self) -> "ContextChoice":
        _check_one(self, ("provider", "filter", "sources"), "Context")
        self._check_provider()
        if not self.sources and (self.budget or self.format):
            raise ValueError("`budget` and `format` are of `sources`. List those, or drop it.")
        return self


def _by_provider(choice: Json) -> Json:
    """A provider that is given by its name alone."""
    return {"provider": choice} if isinstance(choice, str) else choice


def _listed(choices: Json) -> Json:
    """Choices of which there is only one."""
    return choices if kind_of(choices) == "array" else [choices]


def _alone(choices: tuple[ContextChoice, ...]) -> tuple[ContextChoice, ...]:
    """Choices of which none leaves out what another gives."""
    if len(choices) > 1 and any(each.sources for each in choices):
        raise ValueError("`sources` stand alone. Give providers and filters among them.")
    return choices


ContextChoices = Annotated[
    tuple[
        Annotated[
            ContextChoice, BeforeValidator(_by_provider, json_schema_input_type=ContextChoice | str)
        ],
        ...,
    ],
    Field(strict=False),
    BeforeValidator(_listed),
    AfterValidator(_alone),
]


def _check_one(choice: Declared, names: Sequence[str], what: str) -> None:
    """See that exactly one of these keys is given."""
    given = _given(choice, names)
    if len(given) != 1:
        told = _quoted(given) if given else "none"
        raise ValueError(f"{what} is one of {_quoted(names)}; given: {told}. Say one.")


def _given(choice: Declared, names: Sequence[str]) -> list[str]:
    """Those of the keys that say something."""
    return [name for name in names if getattr(choice, name) not in (None, ())]


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


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


class ScriptLine(Declared):
    """What a scripted agent says at one call: a text, the tools it calls, an output."""

    text: str = ""
    calls: tuple[ScriptedCall, ...] = Field(default=(), strict=False)
    output: Json = None


def _spoken(line: Json) -> Json:
    """A line that is given by its text alone."""
    return {"text": line} if isinstance(line, str) else line


Lines = Annotated[
    tuple[
        Annotated[ScriptLine, BeforeValidator(_spoken, json_schema_input_type=ScriptLine | str)],
        ...,
    ],
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


@runtime_checkable
class TurnComponent(Protocol):
    """Wraps whole turns: it goes on by calling `call_next`, once."""

    async def around_turn(self, ctx: TurnContext, call_next: Callable[[], Awaitable[None]]) -> None:
        """Take the turn; what `ctx.state` holds by then, providers find there."""
        ...


@runtime_checkable
class CallComponent(Protocol):
    """Wraps single calls of engines."""

    async def around_call(
        self, task: Task, call_next: Callable[[Task], Awaitable[Answer]]
    ) -> Answer:
        """The answer to a task."""
        ...


Component = TurnComponent | CallComponent
