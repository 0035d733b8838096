"""The task that an engine receives and the answer it returns; questions; published outputs."""

from collections.abc import Awaitable, Callable, Sequence, Set
from contextvars import ContextVar
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import msgspec
from msgspec.structs import astuple
from pydantic import BaseModel

from turnloom.agents.spec.tools import Display, ToolCall, ToolResult, ToolSchema
from turnloom.assembly.logic import prompt_text, rendered
from turnloom.assembly.spec import ContextSlice, Transcript
from turnloom.board.spec import Artifact, Audience, BoardHandle, Visibility
from turnloom.errors import UsageError
from turnloom.kernel.values import Json
from turnloom.variables.spec import Context


class OutputSchema(msgspec.Struct, frozen=True):
    """A named JSON Schema that an answer must match."""

    name: str
    schema: Json


class Exchange(msgspec.Struct, frozen=True):
    """An earlier model call of the same turn: the answer, its tool calls and their results.

    `results` are in the order of `calls`; `problem` says what was wrong with the answer.
    """

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    results: tuple[ToolResult, ...] = ()
    problem: str = ""


class Publication(msgspec.Struct, frozen=True):
    """A value to publish as an artifact, with its tags, visibility and partition.

    What is omitted defaults to the agent's declaration.
    """

    value: BaseModel
    tags: Set[str] | None = None
    visibility: Visibility | None = None
    partition: str | None = None


NO_CONTEXT = ContextSlice([])


def _unmasked(value: Json) -> Json:
    """Return the value unchanged: it contains no secrets."""
    return value


def _discard(text: str | None) -> None:
    """Discard the delta."""


async def _unrecorded(error: str, message: str, pause: float) -> None:
    """Discard the failed attempt."""


class Task(msgspec.Struct, frozen=True):
    """The input of an engine: the recorded frame, and the earlier calls of this turn.

    `inputs` are the artifacts that triggered the turn and `context` is the context of its
    providers, both as shown in the frame. `say` streams deltas of the answer; `say(None)` resets
    the stream when the answer restarts. `mask` removes the run's secrets from a value, for logs.
    `variables` are those of the run, for engines with `takes_variables`; writes are recorded as
    the agent's. `board` is the board as the agent may read it, valid during this call. Await
    `retry(error, message, pause)` to record a failed attempt before the next one, which follows
    after a pause in seconds.
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
    say: Callable[[str | None], None] = _discard
    inputs: tuple[Artifact, ...] = ()
    context: ContextSlice = NO_CONTEXT
    mask: Callable[[Json], Json] = _unmasked
    variables: Context | None = None
    board: BoardHandle | None = None
    retry: Callable[[str, str, float], Awaitable[None]] = _unrecorded

    @property
    def prompt(self) -> str:
        """The whole frame as one text, schemas included."""
        schemas = [rendered(each) for each in (*self.tools, *filter(None, (self.output,)))]
        return prompt_text(self.system, self.transcript) + "".join(schemas)


class Usage(msgspec.Struct, frozen=True, omit_defaults=True):
    """Token usage of a model call.

    `input_tokens` include those that the provider read from its prompt cache (`cached_tokens`) and
    wrote to it (`cache_write_tokens`); `output_tokens` include `reasoning_tokens`. A part that the
    provider does not report is 0.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(*map(sum, zip(astuple(self), astuple(other), strict=True)))

    def joined(self, *, cache_apart: bool, reasoning_apart: bool) -> "Usage":
        """The usage as counted here, from a provider that counts these parts apart."""
        cache = self.cached_tokens + self.cache_write_tokens if cache_apart else 0
        reasoning = self.reasoning_tokens if reasoning_apart else 0
        return self + Usage(cache, reasoning)

    def __str__(self) -> str:
        parts = _named(cached=self.cached_tokens, written_to_cache=self.cache_write_tokens)
        reasoning = _named(reasoning=self.reasoning_tokens)
        return f"{self.input_tokens} in{parts}, {self.output_tokens} out{reasoning}"


def _named(**counts: int) -> str:
    """Those parts of a number of tokens that are not 0, in parentheses."""
    named = [f"{count} {name.replace('_', ' ')}" for name, count in counts.items() if count]
    return f" ({', '.join(named)})" if named else ""


class Answer(msgspec.Struct, frozen=True):
    """The result of an engine: a text, tool calls, a structured output, artifacts to publish.

    `model` is the model that answered, as its provider names it. `added` are the texts that the
    model saw in addition to the task, in order. `before` are the calls of the engine's internal
    tools; the next task of the turn contains them too. `stop` is the reason why the answer ended:
    `end`, `tool`, `length` (cut at its token limit), `refusal` or `filter`; empty if unknown.
    `refusal` is the model's explanation of a refusal.
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
    """Answers tasks on behalf of agents.

    An engine with `takes_variables = True` receives the run's variables and may ask people, as
    tools may. An optional `context_window(model)` returns the size of a model's window in tokens.
    """

    async def __call__(self, task: Task) -> Answer:
        """Answer a task. It is called again with the same key only if the answer was lost."""
        ...


class Asker(Protocol):
    """The current tool or hook call, for asking questions."""

    run: str
    workflow: str

    async def ask(
        self,
        tool: str,
        payload: Json,
        seconds: float | None,
        display: Display | None,
        *,
        to: object = None,
    ) -> Json:
        """Return the recorded answer; without one, abort the call, which restarts when answered."""
        ...


# The current tool or hook call; set only around that call.
ASKING: ContextVar[Asker] = ContextVar("turnloom_asking")


async def use_ui_tool(
    tool_id: str,
    payload: Json = None,
    *,
    timeout: float | None = None,  # noqa: ASYNC109 - the question times out, not this call
    display: Display | None = None,
    to: str | Sequence[str] | None = None,
    chat_id: str | None = None,
    workflow_name: str | None = None,
) -> Json:
    """Ask the user of the run and return the answer. `to` asks other people instead, or a role, as
    in `role:admin`; of several, the first valid answer counts.

    The run pauses until the answer arrives. Then the tool or hook runs again from its start, and
    this call returns the answer.

    Raises:
        UsageError: called outside a tool or hook, or for another run.
        QuestionExpired: the question was not answered within `timeout` seconds.
    """
    asker = ASKING.get(None)
    if asker is None:
        raise UsageError("use_ui_tool() was called outside a tool or hook. Call it inside one.")
    for given, own in ((chat_id, asker.run), (workflow_name, asker.workflow)):
        if given not in (None, own):
            raise UsageError(
                f"use_ui_tool() was called for {given!r} inside {own!r}. Drop that argument."
            )
    return await asker.ask(tool_id, payload, timeout, display, to=to)


class MadeArtifact(NamedTuple):
    """An artifact made by an agent, before it is published."""

    type: str
    payload: dict[str, Json]
    tags: tuple[str, ...]
    visibility: Visibility
    partition: str | None


class Products(Protocol):
    """The artifacts that an agent publishes; `schema` describes an answer that holds them."""

    schema: OutputSchema | None

    async def read(
        self, answer: Answer, audience: Audience, *, is_last: bool
    ) -> tuple[tuple[MadeArtifact, ...], str]:
        """Return the artifacts in an answer, and the problem with it, if any. `audience` may see
        everything that the turn was shown. Only the last engine of a turn must make all declared
        artifacts."""
        ...


@dataclass(frozen=True, slots=True)
class Patience:
    """Timeout of a model call, and the retries after transient errors.

    Pauses between requests start at `pause` seconds and grow randomly up to `longest_pause`. A
    pause that the provider asks for is respected, unless it exceeds `longest_pause`.
    """

    timeout: float = 120.0
    retries: int = 3
    pause: float = 0.5
    longest_pause: float = 60.0
