"""Questions of runs to people, their answers, and messages."""

from typing import Annotated, Any, Literal

import msgspec
from fastapi import APIRouter, Query, Response
from pydantic import Field

from turnloom.agents.spec import Question
from turnloom.runtime.spec import Delivery, WaitingQuestion
from turnloom.server.context import Limit, View
from turnloom.server.replies import replies, reply
from turnloom.server.routes.runs import Body, RunId

router = APIRouter(tags=["questions"])


class QuestionList(msgspec.Struct, frozen=True):
    """Open questions, the oldest first."""

    items: list[Question]


class WaitingPage(msgspec.Struct, frozen=True):
    """Open questions that you may answer. `next` is the cursor of the next page."""

    items: list[WaitingQuestion]
    next: str | None = None


class Delivered(msgspec.Struct, frozen=True):
    """What became of an answer: `taken`, `recorded`, `kept` or `repeated`, and a sentence that says
    so. `by` is the person whose answer counts."""

    delivery: str
    says: str
    by: str = ""


class Sent(msgspec.Struct, frozen=True):
    """A message as its run recorded it: the run that has it, which continues the named one if that
    has ended, and what became of it. `repeated`: it was sent before."""

    id: str
    run: str
    verdict: str
    repeated: bool


class MessageBody(Body):
    """A message to a conversation. `if_busy` says what becomes of it in an open turn. Sending the
    same `id` again changes nothing."""

    text: str = Field(min_length=1, max_length=200_000)
    if_busy: Literal["enqueue", "reject", "interrupt"] = "enqueue"
    id: str | None = Field(None, min_length=1, max_length=200)


class AnswerBody(Body):
    """An answer; without a `question`, to the only one that you may answer."""

    value: Any
    question: str | None = Field(None, max_length=2000)


@router.get(
    "/questions",
    operation_id="list_waiting_questions",
    summary="Questions waiting for me",
    **replies.of(WaitingPage),
)
async def list_waiting_questions(
    view: View,
    limit: Limit = 50,
    cursor: Annotated[str | None, Query(description="`next` of the page before.")] = None,
) -> Response:
    """The open questions that you may answer, in all runs."""
    found = await view.questions(limit, before=cursor)
    return reply(WaitingPage(found, found[-1].run if len(found) >= limit else None))


@router.get(
    "/runs/{run}/questions",
    operation_id="list_questions",
    summary="Open questions of a run",
    **replies.of(QuestionList),
)
async def list_questions(run: RunId, view: View) -> Response:
    """The open questions of a run."""
    return reply(QuestionList(await view.handle(run).questions()))


@router.post(
    "/runs/{run}/answers",
    operation_id="answer_question",
    summary="Answer a question",
    **replies.of(Delivered),
)
async def answer_question(run: RunId, view: View, body: AnswerBody) -> Response:
    """Answer a question of a run. The first valid answer counts; a repeat changes nothing."""
    handle = view.handle(run)
    delivery = await handle.answer(body.question, body.value)
    by = view.principal.user_id
    if delivery is Delivery.REPEATED and body.question is not None:
        by = await handle.answered_by(body.question)
    return reply(Delivered(delivery.name.lower(), delivery.value, by))


@router.post(
    "/runs/{run}/messages",
    operation_id="send_message",
    summary="Send a message",
    **replies.of(Sent, 202),
)
async def send_message(run: RunId, view: View, body: MessageBody) -> Response:
    """Say something in a conversation, at any time: it is the input that the run waits for, or is
    taken in after the open turn, or ends it."""
    sent = await view.handle(run).send(body.text, if_busy=body.if_busy, id=body.id)
    return reply(Sent(sent.id, sent.run, sent.verdict, repeated=sent.repeated), 202)
