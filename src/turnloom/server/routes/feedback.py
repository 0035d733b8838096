"""Feedback: what people think of runs and turns."""

import msgspec
from fastapi import APIRouter, Response
from pydantic import Field

from turnloom.feedback.spec import Feedback
from turnloom.server.context import View
from turnloom.server.replies import replies, reply
from turnloom.server.routes.runs import Body, RunId

router = APIRouter(tags=["feedback"])


class FeedbackList(msgspec.Struct, frozen=True):
    """Feedback on a run, the oldest first."""

    items: list[Feedback]


class FeedbackBody(Body):
    """A score or a label under a name; on a turn, or on the whole run."""

    name: str = Field(max_length=200)
    turn: int | None = Field(None, ge=1, le=2**53)
    score: float | None = Field(None, allow_inf_nan=False)
    label: str | None = Field(None, max_length=200)
    comment: str = Field("", max_length=10_000)


@router.get(
    "/runs/{run}/feedback",
    operation_id="list_feedback",
    summary="Feedback on a run",
    **replies.of(FeedbackList),
)
async def list_feedback(run: RunId, view: View) -> Response:
    """What people think of a run; users see their own."""
    return reply(FeedbackList(await view.feedback.list(run)))


@router.post(
    "/runs/{run}/feedback",
    operation_id="give_feedback",
    summary="Give feedback",
    **replies.of(Feedback, 201),
)
async def give_feedback(run: RunId, view: View, body: FeedbackBody) -> Response:
    """Say what you think of a run, or of a turn. Yours of the same name and turn is replaced."""
    given = await view.feedback.give(
        run,
        body.name,
        turn=body.turn,
        score=body.score,
        label=body.label,
        comment=body.comment,
    )
    return reply(given, 201)
