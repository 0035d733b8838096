"""What the user of a run sees of it: the chat."""

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec

from turnloom.agents.events import (
    AgentOutput,
    AgentText,
    AnswerRefused,
    MessageSent,
    QuestionAnswered,
    QuestionAsked,
    QuestionExpiredFact,
    TurnFinished,
    TurnStarted,
    UserText,
)
from turnloom.agents.logic.answers import Answerer, may_answer
from turnloom.agents.logic.folding import question_of
from turnloom.agents.spec import USER, Question
from turnloom.kernel.values import Json
from turnloom.log.events import (
    RunCancelled,
    RunFailed,
    RunFinished,
    RunForked,
    RunPaused,
    RunResumed,
    RunRetried,
    RunStarted,
)
from turnloom.log.spec import Event, Fact

# The form in which the messages of agents are the chat. What agents of a board make is for those
# who may see it there, and the state of a flow is not shown.
TALK = "conversation"


def is_talk(form: str) -> bool:
    """Whether the messages of the agents of a form are the chat of its user."""
    return form == TALK


class ChatEvent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a user sees of an event: its position, its time, its kind, and what the kind says.

    - run.…: the `status` of the run; `workflow` when it starts; `voided` ranges of positions that
      no longer count, when it is retried; the run that it `continues`
    - turn.…: the `turn`, its `agent`, and the `status` of its end
    - user.text and agent.text: the `text`, its `agent`, or `by` whom; agent.output: the `output`
    - message.sent: a `text` of the user that was not taken in at once, with the `status` that says
      what became of it
    - question.…: the `question` that is put to the user, or the `question_id` of one that was, with
      the `value` if the user answered it, and `by` whom it was answered
    """

    seq: int
    at: datetime
    kind: str
    status: str = ""
    workflow: str = ""
    continues: str = ""
    voided: tuple[tuple[int, int], ...] = ()
    turn: int = 0
    agent: str = ""
    text: str = ""
    output: Json = None
    question: Question | None = None
    question_id: str = ""
    value: Json = None
    by: str = ""


@dataclass(frozen=True, slots=True)
class Viewer:
    """Who looks at the chat of a run of `owner` in a `form`, and the `questions` of it that were
    put to them so far."""

    user: str
    role: str
    owner: str
    form: str
    questions: AbstractSet[str] = frozenset()


def chat_view(event: Event, viewer: Viewer) -> ChatEvent | None:
    """What a user sees of an event, or None. Kinds that are not listed are not seen."""
    show = _SHOWN.get(event.kind)
    shown = None if show is None else show(event, event.data, viewer)
    if shown is None:
        return None
    return ChatEvent(seq=event.seq, at=event.at, kind=event.kind, **shown)


def is_put_to(event: Event, viewer: Viewer) -> bool:
    """Whether an event is a question that the viewer may answer."""
    if not isinstance(event.data, QuestionAsked):
        return False
    by = Answerer(viewer.user, viewer.role)
    return may_answer(question_of(event.data, event.seq), by, viewer.owner)


def delta_audience(form: str, user: str) -> str:
    """The user who sees the text of agents in a run while it is made; empty if they do not."""
    return user if is_talk(form) else ""


# The fields of a chat event, or None.
_Fields = dict[str, Any] | None


def _started(event: Event, fact: RunStarted, viewer: Viewer) -> _Fields:
    return {"status": "running", "workflow": fact.workflow}


def _running(event: Event, fact: Fact, viewer: Viewer) -> _Fields:
    return {"status": "running"}


def _paused(event: Event, fact: RunPaused, viewer: Viewer) -> _Fields:
    return {"status": "waiting" if fact.waiting_for else "collecting"}


def _retried(event: Event, fact: RunRetried, viewer: Viewer) -> _Fields:
    return {"status": "running", "voided": fact.voided}


def _forked(event: Event, fact: RunForked, viewer: Viewer) -> _Fields:
    return {"status": "running", "continues": fact.of if fact.continues else ""}


def _ended(event: Event, fact: Fact, viewer: Viewer) -> _Fields:
    # Why it ended may quote variables, prompts or arguments.
    return {"status": event.kind.removeprefix("run.")}


def _turn_started(event: Event, fact: TurnStarted, viewer: Viewer) -> _Fields:
    return {"turn": fact.turn, "agent": fact.agent}


def _turn_finished(event: Event, fact: TurnFinished, viewer: Viewer) -> _Fields:
    return {"turn": fact.turn, "agent": fact.agent, "status": fact.status}


def _agent_text(event: Event, fact: AgentText, viewer: Viewer) -> _Fields:
    if fact.hidden or not is_talk(viewer.form):
        return None
    return {"turn": fact.turn, "agent": fact.agent, "text": fact.text}


def _agent_output(event: Event, fact: AgentOutput, viewer: Viewer) -> _Fields:
    if fact.hidden or not is_talk(viewer.form):
        return None
    return {"turn": fact.turn, "agent": fact.agent, "output": fact.output}


def _user_text(event: Event, fact: UserText, viewer: Viewer) -> _Fields:
    # What the workflow says on the user's behalf is for its agents.
    if fact.author != USER or not is_talk(viewer.form):
        return None
    return {"text": fact.text, "by": event.actor}


def _message(event: Event, fact: MessageSent, viewer: Viewer) -> _Fields:
    if fact.by != viewer.user or fact.verdict in ("answers", "taken"):
        return None  # its text follows
    return {"text": fact.text, "by": fact.by, "status": fact.verdict}


def _asked(event: Event, fact: QuestionAsked, viewer: Viewer) -> _Fields:
    return {"question": question_of(fact, event.seq)} if is_put_to(event, viewer) else None


def _answered(event: Event, fact: QuestionAnswered, viewer: Viewer) -> _Fields:
    if fact.question not in viewer.questions:
        return None
    value = fact.value if fact.by == viewer.user else None
    return {"question_id": fact.question, "value": value, "by": fact.by}


def _expired(event: Event, fact: QuestionExpiredFact, viewer: Viewer) -> _Fields:
    return {"question_id": fact.question} if fact.question in viewer.questions else None


def _refused(event: Event, fact: AnswerRefused, viewer: Viewer) -> _Fields:
    is_own = fact.by == viewer.user and fact.question in viewer.questions
    return {"question_id": fact.question, "by": fact.by} if is_own else None


# What is shown of each kind that a user sees.
_SHOWN: Mapping[str, Callable[[Event, Any, Viewer], _Fields]] = {
    RunStarted.kind: _started,
    RunPaused.kind: _paused,
    RunResumed.kind: _running,
    RunRetried.kind: _retried,
    RunForked.kind: _forked,
    RunFinished.kind: _ended,
    RunFailed.kind: _ended,
    RunCancelled.kind: _ended,
    TurnStarted.kind: _turn_started,
    TurnFinished.kind: _turn_finished,
    AgentText.kind: _agent_text,
    AgentOutput.kind: _agent_output,
    UserText.kind: _user_text,
    MessageSent.kind: _message,
    QuestionAsked.kind: _asked,
    QuestionAnswered.kind: _answered,
    QuestionExpiredFact.kind: _expired,
    AnswerRefused.kind: _refused,
}
SHOWN = frozenset(_SHOWN)
