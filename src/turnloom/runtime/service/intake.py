"""What comes to a run from outside: messages, and the time."""

from datetime import datetime

from turnloom.agents.events import AnswerRefused, QuestionAnswered, QuestionExpired, UserText
from turnloom.agents.spec import USER
from turnloom.board.events import ArtifactPublished
from turnloom.log.events import CancelRequested, RunPaused
from turnloom.log.spec import Fact
from turnloom.reaction.events import ArtifactReceived, BatchClosed, RetryAsked
from turnloom.runtime.logic import ENDED
from turnloom.runtime.service.journal import Journal
from turnloom.runtime.spec import Close, Deliver, Message, Publish, Reply, Retry, Stop
from turnloom.variables.events import TimerExpired


def expire(journal: Journal, now: datetime) -> None:
    """Put on record what is over by now: timers, what the workflow waits for, a question."""
    due = sorted((at, timer) for timer, at in journal.state.timers.items() if at <= now)
    for at, timer in due:
        journal.record(f"{timer}@{at.isoformat()}", TimerExpired(timer), actor="clock")
    for id, fact in journal.workflow.overdue(journal.state, now):
        journal.record(id, fact, actor="clock")
    question = journal.state.question
    if question is not None and question.due is not None and question.due <= now:
        journal.record(f"{question.id}/expired", QuestionExpired(question.id), actor="clock")


def due(journal: Journal) -> datetime | None:
    """When the run wants to be woken, if nothing comes from outside."""
    state = journal.state
    if state.status in ENDED:
        return None
    asked = state.question.due if state.question else None
    own = journal.workflow.due(state)
    return min([*state.timers.values(), *filter(None, (asked, own))], default=None)


def rest(journal: Journal) -> None:
    """Say what a run waits for, if something came in between that did not end its waiting."""
    question = journal.state.question
    if question is not None and journal.state.status not in ENDED and journal.is_open:
        id = f"{question.id}/wait@{journal.state.position}"
        journal.record(id, RunPaused(question.id), cause=question.seq)


def put_on_record(journal: Journal, id: str, message: Message) -> None:
    """Let a message be what happened."""
    if journal.state.status in ENDED:
        return  # nothing follows the end of a run
    if isinstance(message, Reply):
        _answer(journal, id, message)
    else:
        journal.record(id, *_fact(message))


def _answer(journal: Journal, id: str, reply: Reply) -> None:
    asked, by = journal.state.question, reply.by
    if asked is None or asked.id != reply.question:
        journal.record(id, AnswerRefused(reply.question, by, "the question is not open"), by)
        return
    journal.record(id, QuestionAnswered(reply.question, reply.value, by, asked.tool), actor=by)
    if not asked.tool:
        journal.record(f"{id}/text", UserText(USER, str(reply.value)), actor=by)


def _fact(message: Stop | Publish | Deliver | Close | Retry) -> tuple[Fact, str]:
    """What a message says happened, and who did it."""
    match message:
        case Stop(by=by, reason=reason):
            return CancelRequested(by, reason), by
        case Publish(artifact=artifact):
            return ArtifactPublished(artifact, 0, artifact.id), artifact.produced_by
        case Deliver(artifact=artifact, depth=depth):
            return ArtifactReceived(artifact, depth), artifact.produced_by
        case Close(subscription=subscription):
            return BatchClosed(subscription, "the board was closed"), "driver"
        case Retry(turn=turn, by=by):
            return RetryAsked(turn, by), by
