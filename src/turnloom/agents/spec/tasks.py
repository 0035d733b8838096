"""What an engine receives and returns; questions and published outputs."""

from collections.abc import Awaitable, Callable, Set
from contextvars import ContextVar
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import msgspec
from pydantic import BaseModel

from turnloom.agents.spec.tools import Display, ToolCall, ToolResult, ToolSchema
from turnloom.assembly.logic import prompt_text, rendered
from turnloom.assembly.spec import ContextSlice, Transcript
from turnloom.board.spec import Artifact, Audience, BoardHandle, Visibility
from turnloom.errors import UsageError
from turnloom.kernel.values import Json
from turnloom.variables.spec import Context


class OutputSchema(msgspec.Struct, frozen=True):
    """The form that an answer must have: a JSON Schema under a name."""

    name: str
    schema: Json


class Exchange(msgspec.Struct, frozen=True):
    """An earlier call of the same turn: what the engine said, and what came of it.

    `results` answer `calls` in their order; `problem` says what was wrong with the answer.
    """

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    results: tuple[ToolResult, ...] = ()
    problem: str = ""


class Publication(msgspec.Struct, frozen=True):
    """Something to be published: a value of an artifact type, and what is special about it.

    What is left out is as the agent's declaration has it.
    """

    value: BaseModel
    tags: Set[str] | None = None
    visibility: Visibility | None = None
    partition: str | None = None


NO_CONTEXT = ContextSlice([])


def _as_it_is(value: Json) -> Json:
    """Nothing in it is secret."""
    return value


def _unheard(text: str | None) -> None:
    """Nobody listens."""


async def _unrecorded(error: str, message: str, pause: float) -> None:
    """Discard the failed attempt."""


class Task(msgspec.Struct, frozen=True):
    """What an engine is given: the recorded frame, opened, and the calls of this turn before.

    `inputs` are the artifacts that woke the agent and `context` is what its providers gave, both
    as the frame shows them. `say` takes pieces of the answer while it is made, for whoever watches;
    `say(None)` takes them back, when the answer is made from its beginning again. `mask` gives a
    value without the run's secrets, for whoever writes it down. `variables` are the run's own, for
    engines that take them: what is written there is on record as the agent's. `board` is the board
    as the agent may read it, until this call has its answer. `retry(error, message, pause)`, to be
    awaited, records a failed attempt that another one follows after a pause in seconds.
    """

    run: str
    agent: str
    turn: int
    number: int
    key: str
    system: str
    transcript: Transcript
    tools: tuple[ToolSchema, ...] = ()
    output: OutputSchema | None = None
    exchanges: tuple[Exchange, ...] = ()
    model: str | None = None
    say: Callable[[str | None], None] = _unheard
    inputs: tuple[Artifact, ...] = ()
    context: ContextSlice = NO_CONTEXT
    mask: Callable[[Json], Json] = _as_it_is
    variables: Context | None = None
    board: BoardHandle | None = None
    retry: Callable[[str, str, float], Awaitable[None]] = _unrecorded

    @property
    def prompt(self) -> str:
        """Everything of the frame that the engine was given, as one text."""
        schemas = [rendered(each) for each in (*self.tools, *filter(None, (self.output,)))]
        return prompt_text(self.system, self.transcript) + "".join(schemas)


class Usage(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a model call used."""

    input_tokens: int = 0
    output_tokens: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            self.input_tokens + other.input_tokens, self.output_tokens + other.output_tokens
        )


class Answer(msgspec.Struct, frozen=True):
    """What an engine gave back: a text, tools that it wants called, an output of the asked form,
    artifacts to be published.

    `model` is the one that answered, by its provider's word. `added` are the texts that it was
    shown and the task does not hold, in order. `before` is what the engine itself had tools of its
    own do before it gave this answer; its next task of the turn holds that too. `stop` says why the
    answer ended: `end`, `tool`, `length` (it was cut at its limit), `refusal` or `filter`; nothing
    if the engine does not know. `refusal` is what the model says if it refuses to answer.
    """

    text: str = ""
    usage: Usage = Usage()
    calls: tuple[ToolCall, ...] = ()
    output: Json = None
    artifacts: tuple[Publication, ...] = ()
    model: str = ""
    added: tuple[str, ...] = ()
    before: tuple[Exchange, ...] = ()
    stop: str = ""
    refusal: str = ""


class Engine(Protocol):
    """Makes agents answer.

    One with `takes_variables = True` is given the run's variables with its tasks, and may ask
    people, as tools may. One that knows how many tokens fit into the window of a model says so in
    `context_window(model)`; the model is that of its tasks.
    """

    async def __call__(self, task: Task) -> Answer:
        """The answer to a task. Called again for the same key only if the first answer was lost."""
        ...


class Asker(Protocol):
    """The call that is going on, as far as it can ask."""

    run: str
    workflow: str

    async def ask(
        self, tool: str, payload: Json, seconds: float | None, display: Display | None
    ) -> Json:
        """The answer on record; if there is none, the call ends here and is entered again."""
        ...


# Who asks, in a tool or hook; set around its call and nowhere else.
ASKING: ContextVar[Asker] = ContextVar("turnloom_asking")


async def use_ui_tool(
    tool_id: str,
    payload: Json = None,
    *,
    timeout: float | None = None,  # noqa: ASYNC109 - it is not this call that times out
    display: Display | None = None,
    chat_id: str | None = None,
    workflow_name: str | None = None,
) -> Json:
    """The answer of the person that the run belongs to.

    Until it is there, the run waits, and the tool or hook ends here. When it has come, the tool
    is entered again from its top, and this call gives the answer.

    Raises:
        UsageError: it is not called inside a tool or hook, or for another run.
        QuestionExpired: nobody answered within `timeout` seconds.
    """
    asker = ASKING.get(None)
    if asker is None:
        raise UsageError("use_ui_tool() asks for a tool or hook of a run. Call it inside one.")
    for given, own in ((chat_id, asker.run), (workflow_name, asker.workflow)):
        if given not in (None, own):
            raise UsageError(f"use_ui_tool() was called for {given!r} inside {own!r}.")
    return await asker.ask(tool_id, payload, timeout, display)


class MadeArtifact(NamedTuple):
    """Something that an agent made, as it is to be published."""

    type: str
    payload: dict[str, Json]
    tags: tuple[str, ...]
    visibility: Visibility
    partition: str | None


class Products(Protocol):
    """What an agent publishes; `schema` is the form of an answer that says it as data."""

    schema: OutputSchema | None

    async def read(
        self, answer: Answer, audience: Audience, *, is_last: bool
    ) -> tuple[tuple[MadeArtifact, ...], str]:
        """What an answer holds that is to be published, and what is wrong with it, if anything.
        `audience` may see all that the turn was shown. Only the last engine of a turn has to make
        what the turn is to give."""
        ...


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a model may be silent, and how often it is asked again after trouble that may pass.

    The pauses between requests grow from `pause` on, by chance and at most to `longest_pause`. A
    provider that asks for a pause gets it, unless it is longer than that.
    """

    timeout: float = 120.0
    retries: int = 3
    pause: float = 0.5
    longest_pause: float = 60.0
