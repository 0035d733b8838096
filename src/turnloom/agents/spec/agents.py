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

# The kinds of sources.
KINDS = ("state", "retrieval", "literal", "variables", "provider", "filter", "history")


class RetrievalChoice(Declared):
    """A search in a collection; the query has placeholders for variables, and a filter may take its
    value from the state: `{state: path}`."""

    collection: str = Field(min_length=1)
    query: str
    top_k: int = Field(default=5, ge=1)
    min_relevance: float | None = Field(default=None, ge=0, le=1)
    filters: dict[str, Json] = {}


class HistoryChoice(Declared):
    """How much of the conversation is shown; `summarise` names a function of `providers.py` that
    summarises the rest."""

    last: int | None = Field(default=None, ge=1)
    tokens: int | None = Field(default=None, ge=1)
    summarise: str | None = Field(default=None, min_length=1)


class ProviderChoice(Declared):
    """A context provider by name, or a filter of the board."""

    provider: str | None = Field(default=None, min_length=1)
    filter: FilterConfig | None = None
    fallback: str | None = Field(default=None, min_length=1)
    timeout_s: float = Field(default=60.0, gt=0)
    config: dict[str, Json] = {}

    def _check_provider(self) -> None:
        """Reject options that have no effect without a provider."""
        if self.filter is not None and self.config:
            raise ValueError("`config` applies to a `provider`, not to a `filter`. Remove it.")
        if self.provider is not None or self.filter is not None:
            return
        idle = sorted({"fallback", "timeout_s", "config"} & self.model_fields_set)
        if idle:
            raise ValueError(f"{_quoted(idle)} has no effect here. Remove it.")


class SourceChoice(ProviderChoice):
    """A source of context: exactly one kind, and its share of the budget."""

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
        """The kind of the source."""
        return _given(self, KINDS)[0]


class BudgetChoice(Declared):
    """The token budget of all sources of an agent."""

    max_tokens: int = Field(ge=1)


class FormatChoice(Declared):
    """How an agent's context is formatted: a `ContextFormat`, key by key."""

    header: str = PLAIN.header
    separator: str = PLAIN.separator
    separators: dict[str, str] = {}
    templates: dict[str, str] = {}
    citation: str = PLAIN.citation
    fence: Fence = PLAIN.fence
    order: Order = PLAIN.order


class ContextChoice(ProviderChoice):
    """The provider of an agent's context, or its sources with their budget and format."""

    sources: tuple[SourceChoice, ...] = Field(default=(), strict=False)
    budget: BudgetChoice | None = None
    format: FormatChoice | None = None

    @model_validator(mode="after")
    def _is_one_choice(self) -> "ContextChoice":
        _check_one(self, ("provider", "filter", "sources"), "Context")
        self._check_provider()
        if not self.sources and (self.budget or self.format):
            raise ValueError("`budget` and `format` need `sources`. Add them, or remove both.")
        return self


def _by_provider(choice: Json) -> Json:
    """Expand a provider given by name alone."""
    return {"provider": choice} if isinstance(choice, str) else choice


def _listed(choices: Json) -> Json:
    """Wrap a single choice in a list."""
    return choices if kind_of(choices) == "array" else [choices]


def _alone(choices: tuple[ContextChoice, ...]) -> tuple[ContextChoice, ...]:
    """Reject `sources` next to other choices."""
    if len(choices) > 1 and any(each.sources for each in choices):
        raise ValueError(
            "`sources` cannot be combined with other choices. List those among the sources."
        )
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
    """Check that exactly one of these keys is set."""
    given = _given(choice, names)
    if len(given) != 1:
        found = _quoted(given) if given else "none"
        raise ValueError(f"{what} needs exactly one of {_quoted(names)}, got {found}.")


def _given(choice: Declared, names: Sequence[str]) -> list[str]:
    """The keys that are set."""
    return [name for name in names if getattr(choice, name) not in (None, ())]


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


# Names in handoffs that do not refer to an agent.
USER = "user"
TERMINATE = "terminate"
WORKFLOW = "workflow"

# The author of model-based speaker selection; a script may have lines for it.
SELECTOR = "selector"


class PromptSection(Declared):
    """A section of an agent's instructions, with a heading; one without content is left out."""

    id: str = ""
    heading: str = ""
    content: str | None


class EngineChoice(Declared):
    """The engine of an agent, and the location of its script or function."""

    type: str
    file: str | None = None
    function: str | None = None


class ComponentChoice(Declared):
    """The location of a function that creates a component."""

    file: str
    function: str


def _by_name(choice: Json) -> Json:
    """Expand an engine given by name alone."""
    return {"type": choice} if isinstance(choice, str) else choice


EngineChoices = tuple[
    Annotated[EngineChoice, BeforeValidator(_by_name, json_schema_input_type=EngineChoice | str)],
    ...,
]


class Agent(Declared):
    """An agent: its name, instructions, tools and the schema of its answers."""

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
        if self.system_message and self.prompt_sections:
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
        """The engines of the agent, in order."""
        return (self.engine,) if self.engine is not None else self.engines

    @property
    def instructions(self) -> str:
        """The system prompt of the agent."""
        if self.system_message:
            return self.system_message
        said = (part for part in self.prompt_sections if part.content)
        sections = (f"{part.heading}\n{part.content}".strip() for part in said)
        return "\n\n".join(sections)


class ScriptedCall(Declared):
    """A tool call of a scripted agent."""

    tool: str = Field(min_length=1)
    arguments: dict[str, Json] = {}


class ScriptLine(Declared):
    """The answer of a scripted agent to one call: a text, tool calls, an output."""

    text: str = ""
    calls: tuple[ScriptedCall, ...] = Field(default=(), strict=False)
    output: Json = None


def _spoken(line: Json) -> Json:
    """Expand a line given by its text alone."""
    return {"text": line} if isinstance(line, str) else line


Lines = Annotated[
    tuple[
        Annotated[ScriptLine, BeforeValidator(_spoken, json_schema_input_type=ScriptLine | str)],
        ...,
    ],
    Field(strict=False),
]


class ScriptedFunction(Declared):
    """A function that answers in place of lines."""

    file: str
    function: str


class Script(Declared):
    """The answers of scripted agents and of a scripted user. Agents listed in `repeats` repeat
    their last line."""

    agents: dict[str, Lines] = {}
    repeats: tuple[str, ...] = Field(default=(), strict=False)
    functions: dict[str, ScriptedFunction] = {}
    user: tuple[Json, ...] = Field(default=(), strict=False)


@runtime_checkable
class TurnComponent(Protocol):
    """Wraps whole turns; it must call `call_next` exactly once."""

    async def around_turn(self, ctx: TurnContext, call_next: Callable[[], Awaitable[None]]) -> None:
        """Run the turn; providers can read what `ctx.state` holds by then."""
        ...


@runtime_checkable
class CallComponent(Protocol):
    """Wraps single engine calls."""

    async def around_call(
        self, task: Task, call_next: Callable[[Task], Awaitable[Answer]]
    ) -> Answer:
        """Return the answer to a task."""
        ...


Component = TurnComponent | CallComponent
