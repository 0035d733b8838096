"""What happened in turns, and between the run and people."""

from datetime import datetime
from typing import ClassVar

from turnloom.agents.spec import Exchange, ToolCall, ToolSchema, Usage
from turnloom.board.spec import Audience, Visibility
from turnloom.kernel.values import Json
from turnloom.log.spec import Fact, Intent
from turnloom.variables.events import ContextChanged


class TurnStarted(Fact, frozen=True):
    """An agent's go began."""

    kind: ClassVar[str] = "turn.started"
    turn: int
    agent: str


class TurnFinished(Fact, frozen=True):
    """An agent's go ended: `done`, `failed` or `cancelled`."""

    kind: ClassVar[str] = "turn.finished"
    recorded: ClassVar[frozenset[str]] = frozenset({"error"})
    turn: int
    agent: str
    status: str = "done"
    error: str = ""


class ModelCalled(Intent, frozen=True):
    """An engine is about to be asked; nothing has left the process yet."""

    kind: ClassVar[str] = "model.called"
    turn: int
    agent: str
    engine: str


class ModelAnswered(Fact, frozen=True):
    """An engine answered; what it said follows as the agent's text or output.

    `calls` are the tools it wants called; `raw` is a text that became neither. `model` is who
    answered, and `added` what it was shown beside the frame and the exchanges. `before` is what
    tools of the engine's own did before. `stop` is why the answer ended, as far as the engine
    knows: `end`, `tool`, `length`, `refusal` or `filter`; `refusal` is what the model said to it.
    `replaced` counts half characters of the answer, which cannot be stored and are spelled out.
    `read` are the artifacts that the engine read on the board for it, and `visibility` is that of
    all of them.
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
    """An attempt to ask a model failed, and its engine makes another one after `pause` seconds."""

    kind: ClassVar[str] = "model.retried"
    turn: int
    agent: str
    engine: str
    error: str
    message: str
    pause: float


class ModelFailed(Fact, frozen=True):
    """An engine could not answer; `stack` is where, in the code of users."""

    kind: ClassVar[str] = "model.failed"
    turn: int
    agent: str
    error: str
    message: str
    stack: str = ""


class AgentText(Fact, frozen=True):
    """An agent said something; `hidden` keeps a control word from the user's screen."""

    kind: ClassVar[str] = "agent.text"
    turn: int
    agent: str
    text: str
    hidden: bool = False


class AgentOutput(Fact, frozen=True):
    """An agent gave an output of the form it was asked for; on a board, with what is special about
    it as an artifact."""

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
    """An answer was not of the form that was asked for; the engine is told."""

    kind: ClassVar[str] = "output.refused"
    turn: int
    agent: str
    model: str
    problem: str


class TransferChosen(Fact, frozen=True):
    """An agent's model chose a handoff that was offered to it."""

    kind: ClassVar[str] = "transfer.chosen"
    turn: int
    agent: str
    rule: int
    target: str


class ToolCalled(Intent, frozen=True):
    """A tool is about to be called; it has not begun yet."""

    kind: ClassVar[str] = "tool.called"
    recorded: ClassVar[frozenset[str]] = frozenset({"arguments"})
    turn: int
    agent: str
    tool: str
    arguments: Json = None


class ToolReturned(Fact, frozen=True):
    """A tool gave a result; `writes` take effect when the calls of the answer are settled."""

    kind: ClassVar[str] = "tool.returned"
    recorded: ClassVar[frozenset[str]] = frozenset({"writes"})
    turn: int
    agent: str
    tool: str
    result: Json = None
    writes: tuple[ContextChanged, ...] = ()


class ToolFailed(Fact, frozen=True):
    """A tool failed; the engine is told. `writes` are as those of a tool that returned, `stack` is
    where it failed, in the code of users."""

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
    """All calls of an answer that called several tools are done: what they wrote, and what follows
    from their results, takes effect from here on, in the order of the calls."""

    kind: ClassVar[str] = "calls.settled"
    turn: int
    agent: str


class ToolsOffered(Fact, frozen=True):
    """What a server of tools offers to this run, or why it offers nothing."""

    kind: ClassVar[str] = "tools.offered"
    server: str
    tools: tuple[ToolSchema, ...] = ()
    error: str = ""


class EffectDone(Fact, frozen=True):
    """An effect inside a call of a tool or hook was done, and is not repeated."""

    kind: ClassVar[str] = "effect.done"
    call: str
    name: str
    result: Json = None


class ChanceDrawn(Fact, frozen=True):
    """Chance picked one of several."""

    kind: ClassVar[str] = "chance.drawn"
    among: tuple[str, ...]
    drawn: str


class SpeakerPicked(Fact, frozen=True):
    """A model picked who speaks next."""

    kind: ClassVar[str] = "speaker.picked"
    among: tuple[str, ...]
    picked: str


class UserText(Fact, frozen=True):
    """The user, or the workflow in their place, said something."""

    kind: ClassVar[str] = "user.text"
    author: str
    text: str


class QuestionAsked(Fact, frozen=True):
    """A person was asked, and the run waits for them."""

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


class QuestionAnswered(Fact, frozen=True):
    """What came back."""

    kind: ClassVar[str] = "question.answered"
    question: str
    value: Json
    by: str
    tool: str = ""


class QuestionExpiredFact(Fact, frozen=True):
    """Nobody answered in time, or, for another reason, no answer is waited for any more."""

    kind: ClassVar[str] = "question.expired"
    question: str
    reason: str = ""


class AnswerRefused(Fact, frozen=True):
    """An answer to no open question, or not of its form; it changes nothing."""

    kind: ClassVar[str] = "answer.refused"
    question: str
    by: str
    reason: str
