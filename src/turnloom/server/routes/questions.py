"""Questions of runs to people, and their answers."""

from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Query, Response
from pydantic import Field

from turnloom.agents.spec import Question
from turnloom.runtime.spec import WaitingQuestion
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
    so."""

    delivery: str
    says: str


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
    delivery = await view.handle(run).answer(body.question, body.value)
    return reply(Delivered(delivery.name.lower(), delivery.value))
