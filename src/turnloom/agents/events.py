"""Facts of turns, model calls, tool calls and questions."""

from datetime import datetime
from typing import ClassVar

from turnloom.agents.spec import Exchange, ToolCall, ToolSchema, Usage
from turnloom.board.spec import Audience, Visibility
from turnloom.kernel.values import Json
from turnloom.log.spec import Fact, Intent
from turnloom.variables.events import ContextChanged


class TurnStarted(Fact, frozen=True):
    """A turn of an agent began."""

    kind: ClassVar[str] = "turn.started"
    turn: int
    agent: str


class TurnFinished(Fact, frozen=True):
    """A turn of an agent ended: `done`, `failed` or `cancelled`."""

    kind: ClassVar[str] = "turn.finished"
    recorded: ClassVar[frozenset[str]] = frozenset({"error"})
    turn: int
    agent: str
    status: str = "done"
    error: str = ""


class ModelCalled(Intent, frozen=True):
    """An engine is about to be called; nothing has left the process yet."""

    kind: ClassVar[str] = "model.called"
    turn: int
    agent: str
    engine: str


class ModelAnswered(Fact, frozen=True):
    """An engine answered; its text or output follows as a separate fact.

    `calls` are the requested tool calls; `raw` is a text that became neither text nor output.
    `model` is the model that answered, `added` the texts it saw in addition to the frame and the
    exchanges, `before` the calls of the engine's internal tools. `stop` is the reason why the
    answer ended, if known: `end`, `tool`, `length`, `refusal` or `filter`; `refusal` is the
    model's explanation. `replaced` counts lone surrogates, which cannot be stored and are escaped.
    `read` lists the artifacts that the engine read on the board, `visibility` the audience that
    may see all of them.
    """

    kind: ClassVar[str] = "model.answered"
    turn: int
    agent: str
    usage: Usage = Usage()
    calls: tuple[ToolCall, ...] = ()
    raw: str = ""
    model: str = ""
    added: tuple[str, ...] = ()
    before: tuple[Exchange, ...] = ()
    stop: str = ""
    refusal: str = ""
    replaced: int = 0
    read: tuple[str, ...] = ()
    visibility: Audience = ()


class ModelRetried(Fact, frozen=True):
    """A model call failed, and its engine retries it after `pause` seconds."""

    kind: ClassVar[str] = "model.retried"
    turn: int
    agent: str
    engine: str
    error: str
    message: str
    pause: float


class ModelLimited(Fact, frozen=True):
    """A model call waits for a limit of all runs together; `reason` says which."""

    kind: ClassVar[str] = "model.limited"
    turn: int
    agent: str
    model: str
    reason: str


class ModelFailed(Fact, frozen=True):
    """An engine failed; `stack` is the traceback in user code."""

    kind: ClassVar[str] = "model.failed"
    turn: int
    agent: str
    error: str
    message: str
    stack: str = ""


class AgentText(Fact, frozen=True):
    """A text of an agent; `hidden` texts are control words that the user does not see."""

    kind: ClassVar[str] = "agent.text"
    turn: int
    agent: str
    text: str
    hidden: bool = False


class AgentOutput(Fact, frozen=True):
    """A structured output of an agent; on a board, with its tags, visibility and partition."""

    kind: ClassVar[str] = "agent.output"
    turn: int
    agent: str
    model: str
    output: Json
    hidden: bool = False
    tags: tuple[str, ...] = ()
    visibility: Visibility | None = None
    partition: str | None = None


class OutputRefused(Fact, frozen=True):
    """An answer did not match its schema; the engine receives the problem."""

    kind: ClassVar[str] = "output.refused"
    turn: int
    agent: str
    model: str
    problem: str


class TransferChosen(Fact, frozen=True):
    """The model of an agent chose an offered handoff."""

    kind: ClassVar[str] = "transfer.chosen"
    turn: int
    agent: str
    rule: int
    target: str


class ToolCalled(Intent, frozen=True):
    """A tool is about to be called."""

    kind: ClassVar[str] = "tool.called"
    recorded: ClassVar[frozenset[str]] = frozenset({"arguments"})
    turn: int
    agent: str
    tool: str
    arguments: Json = None


class ToolReturned(Fact, frozen=True):
    """A tool returned; `writes` take effect when all calls of the answer are settled."""

    kind: ClassVar[str] = "tool.returned"
    recorded: ClassVar[frozenset[str]] = frozenset({"writes"})
    turn: int
    agent: str
    tool: str
    result: Json = None
    writes: tuple[ContextChanged, ...] = ()


class ToolFailed(Fact, frozen=True):
    """A tool failed; the engine receives the error. `writes` take effect as with `ToolReturned`,
    `stack` is the traceback in user code."""

    kind: ClassVar[str] = "tool.failed"
    recorded: ClassVar[frozenset[str]] = frozenset({"message", "stack", "writes"})
    turn: int
    agent: str
    tool: str
    error: str
    message: str
    writes: tuple[ContextChanged, ...] = ()
    stack: str = ""


class CallsSettled(Fact, frozen=True):
    """All tool calls of an answer are done; their writes and results take effect now, in the order
    of the calls."""

    kind: ClassVar[str] = "calls.settled"
    turn: int
    agent: str


class ToolsOffered(Fact, frozen=True):
    """The tools that a server offers to this run, or the error if it offers none."""

    kind: ClassVar[str] = "tools.offered"
    server: str
    tools: tuple[ToolSchema, ...] = ()
    error: str = ""


class EffectDone(Fact, frozen=True):
    """An effect inside a tool or hook call is done and will not be repeated."""

    kind: ClassVar[str] = "effect.done"
    call: str
    name: str
    result: Json = None


class ChanceDrawn(Fact, frozen=True):
    """A random choice was made."""

    kind: ClassVar[str] = "chance.drawn"
    among: tuple[str, ...]
    drawn: str


class SpeakerPicked(Fact, frozen=True):
    """A model picked the next speaker, or the handoff that applies to the user's message."""

    kind: ClassVar[str] = "speaker.picked"
    among: tuple[str, ...]
    picked: str


class UserText(Fact, frozen=True):
    """A message of the user, or of the workflow on the user's behalf."""

    kind: ClassVar[str] = "user.text"
    author: str
    text: str


class MessageSent(Fact, frozen=True):
    """A message of the user that came by itself, and what the run made of it.

    The `verdict` is `answers` if the run waited for the user's input; `taken` if no turn was open,
    so that it is next; in an open turn `queued` until that ends, `interrupts` if it ends the turn,
    or `rejected`, as `if_busy` says.
    """

    kind: ClassVar[str] = "message.sent"
    text: str
    by: str
    if_busy: str = "enqueue"
    verdict: str = "taken"


class QuestionAsked(Fact, frozen=True):
    """A question to a person; the run waits for the answer. `among` are its addressees if there are
    several."""

    kind: ClassVar[str] = "question.asked"
    question: str
    prompt: str = ""
    to: str = ""
    tool: str = ""
    payload: Json = None
    component: str = ""
    display: str = "inline"
    schema: Json = None
    due: datetime | None = None
    among: tuple[str, ...] = ()


class QuestionAnswered(Fact, frozen=True):
    """A question was answered, by a person with a role, if it is known."""

    kind: ClassVar[str] = "question.answered"
    question: str
    value: Json
    by: str
    tool: str = ""
    role: str = ""


class QuestionExpiredFact(Fact, frozen=True):
    """A question closed without an answer: it timed out, or is no longer needed."""

    kind: ClassVar[str] = "question.expired"
    question: str
    reason: str = ""


class AnswerRefused(Fact, frozen=True):
    """An answer was rejected: its question is not open, or it does not match the schema."""

    kind: ClassVar[str] = "answer.refused"
    question: str
    by: str
    reason: str
