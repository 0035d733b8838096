"""What happened in turns, and between the run and people."""

from typing import ClassVar

from weft.agents.spec import Usage
from weft.kernel.values import Json
from weft.log.spec import Fact, Intent


class TurnStarted(Fact, frozen=True):
    """An agent's go began."""

    kind: ClassVar[str] = "turn.started"
    turn: int
    agent: str


class TurnFinished(Fact, frozen=True):
    """An agent's go ended: `done`, `failed` or `cancelled`."""

    kind: ClassVar[str] = "turn.finished"
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
    """An engine answered; what it said follows as the agent's text."""

    kind: ClassVar[str] = "model.answered"
    turn: int
    agent: str
    usage: Usage = Usage()


class ModelFailed(Fact, frozen=True):
    """An engine could not answer."""

    kind: ClassVar[str] = "model.failed"
    turn: int
    agent: str
    error: str
    message: str


class AgentText(Fact, frozen=True):
    """An agent said something; `hidden` keeps a control word from the user's screen."""

    kind: ClassVar[str] = "agent.text"
    turn: int
    agent: str
    text: str
    hidden: bool = False


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


class QuestionAnswered(Fact, frozen=True):
    """What came back."""

    kind: ClassVar[str] = "question.answered"
    question: str
    value: Json
    by: str
    tool: str = ""


class AnswerRefused(Fact, frozen=True):
    """An answer that came for no open question; it changes nothing."""

    kind: ClassVar[str] = "answer.refused"
    question: str
    by: str
    reason: str
