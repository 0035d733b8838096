"""Agents, tasks and answers; questions; what a run knows; what can be decided next."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Annotated, Any, Protocol

import msgspec
from pydantic import BeforeValidator, Field, model_validator

from weft.assembly.events import Segment, Span
from weft.assembly.logic import EMPTY, prompt_text
from weft.assembly.spec import Message, Transcript
from weft.kernel.models import Declared
from weft.kernel.values import Json
from weft.log.events import CancelRequested
from weft.log.spec import Fact
from weft.variables.logic.derivation import Triggers
from weft.variables.spec import Variables

# Names that handoffs use for whoever is not an agent.
USER = "user"
TERMINATE = "terminate"
WORKFLOW = "workflow"


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


def _by_name(choice: Json) -> Json:
    """An engine that is given by its name alone."""
    return {"type": choice} if isinstance(choice, str) else choice


class Agent(Declared):
    """Who answers: a name and its instructions."""

    name: str = Field(min_length=1)
    system_message: str | None = None
    prompt_sections: tuple[PromptSection, ...] = Field(default=(), strict=False)
    engine: Annotated[EngineChoice, BeforeValidator(_by_name)] | None = None

    @model_validator(mode="after")
    def _has_one_form_of_instructions(self) -> "Agent":
        if self.system_message is not None and self.prompt_sections:
            raise ValueError(
                f"Agent {self.name!r} has both `system_message` and `prompt_sections`. Keep one."
            )
        return self

    @property
    def instructions(self) -> str:
        """What the agent is told before anything else."""
        if self.system_message is not None:
            return self.system_message
        sections = (f"{part.heading}\n{part.content}".strip() for part in self.prompt_sections)
        return "\n\n".join(sections)


class Script(Declared):
    """What scripted agents say, call by call, and what a scripted user answers."""

    agents: dict[str, Annotated[tuple[str, ...], Field(strict=False)]] = {}
    user: tuple[str, ...] = Field(default=(), strict=False)


class Task(msgspec.Struct, frozen=True):
    """What an engine is given: the recorded frame, opened."""

    run: str
    agent: str
    turn: int
    number: int
    key: str
    system: str
    transcript: Transcript

    @property
    def prompt(self) -> str:
        """Everything the engine was given, as one text."""
        return prompt_text(self.system, self.transcript)


class Usage(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a model call used."""

    input_tokens: int = 0
    output_tokens: int = 0


class Answer(msgspec.Struct, frozen=True):
    """What an engine gave back."""

    text: str
    usage: Usage = Usage()


class Engine(Protocol):
    """Makes agents answer."""

    async def __call__(self, task: Task) -> Answer:
        """The answer to a task. Called again for the same key only if the first answer was lost."""
        ...


class Question(msgspec.Struct, frozen=True, omit_defaults=True):
    """Something asked of a person."""

    id: str
    prompt: str = ""
    to: str = ""


class OpenTurn(msgspec.Struct):
    """The turn being taken, with what is already on record for it, by id."""

    number: int
    agent: str
    recorded: dict[str, Fact] = {}


class RunState(msgspec.Struct):
    """What a run knows: a fold of its log, owned by its driver."""

    run: str
    workflow: str = ""
    tenant: str = ""
    user: str = ""
    status: str = "new"
    position: int = 0
    values: dict[str, Json] = {}
    revision: int = 0
    absent: dict[str, str] = {}
    fired: set[str] = set()
    timers: dict[str, datetime] = {}
    messages: list[Message] = []
    history: Span = Span(0, 0, 0, 0, EMPTY)
    texts: dict[str, str] = {}
    views: dict[str, tuple[int, tuple[Segment, ...]]] = {}
    turns: int = 0
    turns_of: dict[str, int] = {}
    open: OpenTurn | None = None
    question: Question | None = None
    cancel: CancelRequested | None = None
    progress: Any = None


class TakeTurn(msgspec.Struct, frozen=True):
    """It is this agent's turn."""

    agent: str
    facts: tuple[tuple[str, Fact], ...] = ()


class Ask(msgspec.Struct, frozen=True):
    """A person is asked, and the run waits."""

    question: Question
    facts: tuple[tuple[str, Fact], ...] = ()


class Finish(msgspec.Struct, frozen=True):
    """The run is done."""

    reason: str
    facts: tuple[tuple[str, Fact], ...] = ()


Decision = TakeTurn | Ask | Finish


class Workflow(Protocol):
    """What decides whose turn it is: a conversation, a set of reactions or a flow.

    `progress` is the type of its own part of the state, and `folds` how facts change that part.
    """

    name: str
    version: str
    agents: Mapping[str, Agent]
    variables: Variables
    triggers: Triggers
    progress: type
    folds: Mapping[type, Callable[[Any, Any], None]]

    def begin(self) -> Any:
        """The workflow's own part of a fresh state."""
        ...

    def decide(self, state: RunState) -> Decision:
        """What comes next, from the state alone."""
        ...
