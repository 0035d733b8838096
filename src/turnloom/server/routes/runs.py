"""Runs: start, list, read, resume, cancel, retry, fork."""

from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Annotated, Any, cast

import msgspec
from fastapi import APIRouter, Depends, Header, Path, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from turnloom.app.choosing import RunChoice
from turnloom.app.view import LoomView
from turnloom.errors import UnknownRun, UsageError
from turnloom.kernel.digests import digest
from turnloom.kernel.values import canonical
from turnloom.runtime.spec import RunSummary
from turnloom.server.context import Asking, Limit, Served, State, View, open_stream
from turnloom.server.replies import JSON, replies, reply
from turnloom.server.run_list_feed import RunListFeed
from turnloom.server.streams import MEDIA_TYPE

router = APIRouter(tags=["runs"])

RunId = Annotated[str, Path(description="The id of a run.", max_length=1000)]


class RunPage(msgspec.Struct, frozen=True):
    """Runs, the latest first. `next` is the cursor of the next page."""

    items: list[RunSummary]
    next: str | None = None


class Cancelled(msgspec.Struct, frozen=True):
    """Whether the run was open."""

    was_open: bool


class Body(BaseModel):
    """The body of a request; unknown fields are refused."""

    model_config = ConfigDict(extra="forbid")


class StartBody(Body):
    """What to start: a workflow of this server; a flow begins with the state `input`."""

    workflow: str = Field(max_length=1000)
    input: dict[str, Any] | None = None


class CancelBody(Body):
    """Why a run is cancelled."""

    reason: str = Field("", max_length=10_000)


class RetryBody(Body):
    """What is done again: by default what failed. See `turnloom retry`."""

    since: int | str | None = None
    at: int | None = Field(None, ge=1)
    workflow: str | None = Field(None, description="A changed workflow of this server.")
    budget: dict[str, float] | None = None
    tools: str | None = None


class ForkBody(Body):
    """Where a fork begins, and what is different in it. See `turnloom fork`."""

    at: int = Field(ge=1)
    answer: Any = None
    values: dict[str, Any] | None = None
    workflow: str | None = Field(None, description="A changed workflow of this server.")
    tools: str = "ask"


@router.post(
    "/runs", operation_id="start_run", summary="Start a run", **replies.of(RunSummary, 201)
)
async def start_run(
    body: StartBody,
    view: View,
    state: State,
    caller: Asking,
    idempotency_key: Annotated[
        str | None,
        Header(
            max_length=255,
            description="A repeated request with the same key gives the run that the first one "
            "started; one with another workflow or input is refused with 409.",
        ),
    ] = None,
) -> Response:
    """Start a run of a workflow, and drive it."""
    id = None if idempotency_key is None else _derived(view, idempotency_key)
    if id is None or not await _is_there(view, id):
        state.starts.take(caller.key)
    workflows = state.loom.workflows
    flow = workflows.flow(body.workflow)
    if flow is not None:
        run = await view.start(flow, workflows.state(flow, body.input), id=id)
    elif body.input is None:
        run = await view.start(workflows.folder(body.workflow), id=id)
    else:
        raise UsageError("`input` is the state of a flow. Leave it out: this is none.")
    found = await run.summary()
    return reply(found, 201, {"Location": f"/api/v1/runs/{run.id}"})


def _chosen(
    status: Annotated[list[str] | None, Query(description="Only runs with this status.")] = None,
    workflow: Annotated[str | None, Query(description="Only runs of this workflow.")] = None,
    user: Annotated[str | None, Query(description="Only runs of this user.")] = None,
    since: Annotated[
        str | None, Query(description="Only runs begun since: an instant, or an age as `1h`.")
    ] = None,
    until: Annotated[
        str | None, Query(description="Only runs begun until: an instant, or an age as `1h`.")
    ] = None,
    feedback: Annotated[
        str | None, Query(description="Only runs with this feedback, as `quality<0.5`.")
    ] = None,
    find: Annotated[
        str | None,
        Query(
            max_length=1000,
            description="Only runs with these words in id, workflow, user, status or reason.",
        ),
    ] = None,
) -> RunChoice:
    """The filter that a request asks for."""
    given: dict[str, Any] = {"status": status, "workflow": workflow, "user": user}
    given |= {"since": _time(since), "until": _time(until), "feedback": feedback, "find": find}
    return cast(RunChoice, {name: value for name, value in given.items() if value is not None})


def _time(word: str | None) -> datetime | str | None:
    """An instant in ISO 8601, or an age."""
    try:
        return None if word is None else datetime.fromisoformat(word)
    except ValueError:
        return word


_STREAM = {
    "schema": {
        "type": "string",
        "description": "Server-sent events. Unnamed ones are runs (`RunSummary`): at first those "
        "of the page, then each that is new in it or has moved. `gone` names one that left it.",
    }
}
# Opens a stream of the list that is made with the seconds between two looks.
Follow = Callable[[Callable[[float], RunListFeed]], Response]


def _following(request: Request, state: State, asking: Asking) -> Follow | None:
    """Opens a stream for the one who asks, if they accept one."""
    if MEDIA_TYPE not in request.headers.get("accept", ""):
        return None
    return lambda make: open_stream(state, asking, [make(state.limits.look_seconds)])


_PAGE_OR_STREAM = {JSON: {"schema": replies.schema(RunPage)}, MEDIA_TYPE: _STREAM}


@router.get(
    "/runs",
    operation_id="list_runs",
    summary="List or follow runs",
    **replies.raw({"content": _PAGE_OR_STREAM}),
)
async def list_runs(
    view: View,
    follow: Annotated[Follow | None, Depends(_following)],
    which: Annotated[RunChoice, Depends(_chosen)],
    limit: Limit = 50,
    cursor: Annotated[str | None, Query(description="`next` of the page before.")] = None,
    unfinished: Annotated[bool, Query(description="Only runs that have not ended.")] = False,
) -> Response:
    """The runs that you may see: a page, or with `Accept: text/event-stream` the first page as a
    stream of what moves in it."""
    if follow is not None:
        await view.runs(0, unfinished=unfinished, **which)  # refuses a filter that is not valid
        return follow(partial(RunListFeed, view, which, limit, unfinished=unfinished))
    found = await view.runs(limit, before=cursor, unfinished=unfinished, **which)
    return reply(RunPage(found, found[-1].run if len(found) == limit else None))


@router.get("/runs/{run}", operation_id="read_run", summary="Read a run", **replies.of(RunSummary))
async def read_run(run: RunId, view: View) -> Response:
    """One run in one line."""
    return reply(await _summary(view, run))


@router.post(
    "/runs/{run}/resume",
    operation_id="resume_run",
    summary="Resume a run",
    **replies.of(RunSummary, 202),
)
async def resume_run(run: RunId, view: View) -> Response:
    """Continue a run where its log ends."""
    await view.resume(run)
    return reply(await _summary(view, run), 202)


@router.post(
    "/runs/{run}/cancel", operation_id="cancel_run", summary="Cancel a run", **replies.of(Cancelled)
)
async def cancel_run(run: RunId, view: View, body: CancelBody) -> Response:
    """Cancel a run; what completed stays on record."""
    return reply(Cancelled(await view.handle(run).cancel(reason=body.reason)))


@router.post(
    "/runs/{run}/retry",
    operation_id="retry_run",
    summary="Retry a run",
    **replies.of(RunSummary, 202),
)
async def retry_run(run: RunId, view: View, state: State, body: RetryBody) -> Response:
    """Make a run continue after it ended: from what failed, or from what is named."""
    folder = _folder(state, body.workflow)
    await view.handle(run).retry(
        body.since, at=body.at, folder=folder, budget=body.budget, tools=body.tools
    )
    return reply(await _summary(view, run), 202)


@router.post(
    "/runs/{run}/fork", operation_id="fork_run", summary="Fork a run", **replies.of(RunSummary, 201)
)
async def fork_run(
    run: RunId, view: View, state: State, caller: Asking, body: ForkBody
) -> Response:
    """Begin another run with the events of this one up to a position."""
    state.starts.take(caller.key)
    forked = await view.handle(run).fork(
        body.at,
        answer=body.answer,
        values=body.values,
        folder=_folder(state, body.workflow),
        tools=body.tools,
    )
    found = await forked.summary()
    return reply(found, 201, {"Location": f"/api/v1/runs/{forked.id}"})


def _derived(view: LoomView, key: str) -> str:
    """The id of the run that a caller starts under a key."""
    who = view.principal
    return digest(canonical(["start", who.app_id, who.user_id, key]))[:32]


async def _is_there(view: LoomView, id: str) -> bool:
    try:
        await view.handle(id).summary()
    except UnknownRun:
        return False
    return True


def _folder(state: Served, name: str | None) -> str | None:
    return None if name is None else state.loom.workflows.folder(name)


async def _summary(view: LoomView, run: str) -> RunSummary:
    return await view.handle(run).summary()
