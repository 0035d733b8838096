"""Take in what comes from outside: messages and time."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

import msgspec
from msgspec import UNSET

from turnloom.agents.events import (
    AnswerRefused,
    MessageSent,
    QuestionAnswered,
    QuestionExpiredFact,
    UserText,
)
from turnloom.agents.logic.answers import Answerer, answer_id, may_answer, refusal
from turnloom.agents.logic.folding import text_id
from turnloom.agents.spec import USER, Question, RunState
from turnloom.board.events import ArtifactPublished, ArtifactRefused
from turnloom.board.logic.rows import read_artifact, read_visibility
from turnloom.board.spec import Artifact, Public
from turnloom.errors import ArtifactExists
from turnloom.log.events import CancelRequested, RunPaused
from turnloom.log.spec import Fact, RunKey
from turnloom.reaction.events import ArtifactReceived, BatchClosed, RetryAsked
from turnloom.runs.form import Form
from turnloom.runtime.calls import opened
from turnloom.runtime.journal import Journal
from turnloom.runtime.logic import ENDED
from turnloom.runtime.ports import Artifacts, Inbox
from turnloom.runtime.spec import (
    Close,
    Deliver,
    IfBusy,
    Publish,
    Reply,
    RetryTurn,
    Say,
    Stop,
    Wake,
)
from turnloom.variables.events import TimerExpired

_NEVER = datetime.min.replace(tzinfo=UTC)


async def already(artifacts: Artifacts, tenant: str, made: Artifact) -> Artifact | None:
    """The tenant's artifact of this id, if it is stored with this content.

    Raises:
        ArtifactExists: it is there with other content.
    """
    rows = await artifacts.find(tenant, made.id)
    found = next((row for row in rows if row.tenant == tenant), None)
    if found is None:
        return None
    visibility = read_visibility(found.visibility)
    there = read_artifact(visibility or Public(), found.data)
    if visibility is None or not is_same(there, made):
        raise ArtifactExists(made.id)
    return there


def is_same(one: Artifact, other: Artifact) -> bool:
    """Whether two artifacts of one id are the same, apart from time, run and index."""
    return _content(one) == _content(other)


def _content(artifact: Artifact) -> Artifact:
    return msgspec.structs.replace(artifact, run=None, created_at=_NEVER, indexed=UNSET)


# Messages that are recorded.
Recordable = Reply | Say | Stop | Publish | Deliver | Close | RetryTurn


async def take_in(journal: Journal, inbox: Inbox, artifacts: Artifacts) -> None:
    """Record the messages to a run; expired questions first, so that late answers are refused."""
    expire(journal)
    pending = await mail_of(inbox, journal.run)
    for id, message in pending:
        if isinstance(message, Publish) and (
            why := await _refusal(artifacts, journal.run.tenant, message)
        ):
            journal.record(id, ArtifactRefused(message.artifact.id, why), is_given=True)
        else:
            put_on_record(journal, id, message)
    if pending:
        await journal.commit()


async def mail_of(inbox: Inbox, run: RunKey) -> list[tuple[str, Recordable]]:
    """The messages to record. `Wake` is none: the drive that continues the run records its own
    mark."""
    pending = await inbox.pending(run)
    return [(id, message) for id, message in pending if not isinstance(message, Wake)]


async def _refusal(artifacts: Artifacts, tenant: str, message: Publish) -> str:
    """Why an artifact cannot be published: the run could never be stored again with it."""
    try:
        await already(artifacts, tenant, message.artifact)
    except ArtifactExists as error:
        return str(error)
    return ""


def expire(journal: Journal) -> None:
    """Record what has expired: timers, what the form waits for, questions."""
    if journal.state.status in ENDED:
        return
    journal.time.pass_on()
    for id, fact in expirations(journal):
        journal.record(id, fact, actor="clock")


def expirations(journal: Journal) -> Iterator[tuple[str, Fact]]:
    """What has expired now, with the ids of events. Each may be recorded before the next is looked
    for."""
    state, now = journal.state, journal.time.now()
    due = sorted((at, timer) for timer, at in state.timers.items() if at <= now)
    for at, timer in due:
        yield f"{timer}@{at.isoformat()}", TimerExpired(timer)
    yield from journal.workflow.overdue(state, now)
    for question in [*state.questions.values()]:
        if question.due is not None and question.due <= now:
            yield f"{question.id}/expired", QuestionExpiredFact(question.id)


def due(form: Form, state: RunState) -> datetime | None:
    """When to wake a run, if nothing comes from outside."""
    if state.status in ENDED:
        return None
    if not (state.timers or state.questions):
        return form.due(state)
    instants = [*state.timers.values()]
    instants += [each.due for each in state.questions.values() if each.due is not None]
    own = form.due(state)
    return min([*instants, own] if own is not None else instants, default=None)


def park(journal: Journal) -> None:
    """Record what a run waits for, unless that is its last event."""
    state = journal.state
    if state.status in ENDED or journal.last == RunPaused.kind:
        return
    question, at = state.question, due(journal.workflow, state)
    if question is None:
        journal.record(f"rest@{state.position}", resting(journal, at))
        return
    is_first = state.paused_for != question.id
    id = f"{question.id}/wait" if is_first else f"{question.id}/wait@{state.position}"
    journal.record(id, RunPaused(question.id, at), cause=question.seq)


def resting(journal: Journal, due: datetime | None) -> RunPaused:
    """The fact that a run rests until something comes, with how much it has collected."""
    rest = journal.workflow.rest(journal.state)
    return RunPaused("", due, rest.collected, rest.wanted)


def put_on_record(journal: Journal, id: str, message: Recordable) -> None:
    """Record a message as a fact."""
    if journal.state.status in ENDED:
        return  # nothing follows the end of a run
    if isinstance(message, Reply):
        _answer(journal, id, message)
    elif isinstance(message, Say):
        _say(journal, id, message)
    else:
        journal.record(id, *_fact(message), is_given=True)


def _answer(journal: Journal, id: str, reply: Reply) -> None:
    """Record an answer, or why it is refused: other programs may write anything to the inbox."""
    asked, by = journal.state.questions.get(reply.question), reply.by
    if asked is None:
        why = "the question is not open"
        journal.record(id, AnswerRefused(reply.question, by, why), by, is_given=True)
        return
    why = refusal(asked, reply.value, Answerer(by, reply.role), journal.state.user)
    if not id.startswith(answer_id(asked.id)):
        why = f"{id!r} is not the id of an answer to it"
    if why:
        journal.record(id, AnswerRefused(asked.id, by, why), by, is_given=True)
        return
    fact = QuestionAnswered(reply.question, reply.value, by, asked.tool, role=reply.role)
    journal.record(id, fact, actor=by, is_given=True)
    if not asked.tool:
        journal.record(f"{id}/text", UserText(USER, str(reply.value)), actor=by)


def _say(journal: Journal, id: str, say: Say) -> None:
    """Record a message, and what becomes of it."""
    state, by = journal.state, say.by
    asked = next((each for each in state.questions.values() if _takes(each, by, state)), None)
    verdict = "answers" if asked else _verdict(state, say)
    journal.record(id, MessageSent(say.text, by, say.if_busy, verdict), by, is_given=True)
    if asked is not None:
        journal.record(f"{id}/answer", QuestionAnswered(asked.id, say.text, by), by)
        journal.record(text_id(id), UserText(USER, say.text), by)


def _takes(question: Question, by: str, state: RunState) -> bool:
    """Whether a question waits for the input of its run's user."""
    return not question.tool and may_answer(question, Answerer(by), state.user)


def _verdict(state: RunState, say: Say) -> str:
    if say.by != state.user:
        return "rejected"  # other programs may write anything to the inbox
    if not state.open:
        return "taken"
    return _VERDICTS[say.if_busy]


# What becomes of a message that comes in an open turn.
_VERDICTS: Mapping[IfBusy, str] = {
    "enqueue": "queued",
    "reject": "rejected",
    "interrupt": "interrupts",
}


async def hear(journal: Journal, inbox: Inbox) -> None:
    """Record the messages of the run's user, and no others, while a turn is open."""
    heard = [(id, each) for id, each in await inbox.pending(journal.run) if isinstance(each, Say)]
    for id, message in heard:
        put_on_record(journal, id, message)
    if heard:
        await journal.commit()


def can_deliver(state: RunState) -> bool:
    """Whether a queued message can be taken in: nothing is open that comes before it."""
    if not state.queue or state.open or state.questions or state.status in ENDED:
        return False
    return state.cancel is None and state.failure is None


def deliver(journal: Journal) -> None:
    """Take in the queued messages, in their order."""
    for message in journal.state.queue:
        text = opened(journal, message.text)
        journal.record(text_id(message.id), UserText(USER, text), message.by)


def _fact(message: Stop | Publish | Deliver | Close | RetryTurn) -> tuple[Fact, str]:
    """The fact of a message, and its actor."""
    match message:
        case Stop(by=by, reason=reason):
            return CancelRequested(by, reason), by
        case Publish(artifact=artifact):
            return ArtifactPublished(artifact, 0, artifact.id), artifact.produced_by
        case Deliver(artifact=artifact, depth=depth, root=root):
            return ArtifactReceived(artifact, depth, root), artifact.produced_by
        case Close(subscription=subscription):
            return BatchClosed(subscription, "the board was closed"), "driver"
        case RetryTurn(turn=turn, by=by):
            return RetryAsked(turn, by), by
