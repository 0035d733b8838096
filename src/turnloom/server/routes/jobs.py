"""Jobs: backtest recorded runs, and retry many."""

from collections.abc import Sequence
from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Path, Query, Response
from pydantic import Field

from turnloom.app.view import LoomView
from turnloom.errors import TurnloomError, UsageError
from turnloom.explain.spec.backtest import Backtest
from turnloom.server.context import Limit, State, View
from turnloom.server.jobs import Job
from turnloom.server.problems import Problem, problem_of
from turnloom.server.replies import replies, reply
from turnloom.server.routes.runs import Body

router = APIRouter(tags=["jobs"])

JobId = Annotated[str, Path(description="The id of a job.", max_length=100)]

# The most runs of a job.
MOST = 1000

# The kinds of jobs.
BACKTEST, RETRY = "backtest", "retry"


class JobPage(msgspec.Struct, frozen=True):
    """Jobs, the latest first. `next` is the cursor of the next page."""

    items: list[Job]
    next: str | None = None


class RetriedRun(msgspec.Struct, frozen=True):
    """A run that a job retried: its status then, or why it was not retried."""

    run: str
    status: str = ""
    problem: Problem | None = None


class RetryReport(msgspec.Struct, frozen=True):
    """The runs that a job retried so far."""

    runs: list[RetriedRun]


class ChosenRuns(Body):
    """Which runs: their ids, or the latest of a workflow."""

    runs: list[str] | None = Field(None, min_length=1, max_length=MOST)
    last: int | None = Field(None, ge=1, le=MOST)
    since: str | None = Field(None, max_length=100)


class BacktestBody(ChosenRuns):
    """A workflow of this server as it is now, to decide recorded runs again with."""

    workflow: str = Field(max_length=1000)


class RetryManyBody(ChosenRuns):
    """Runs to retry; without ids, those that failed, of a workflow or of all."""

    workflow: str | None = Field(None, max_length=1000)
    tools: str | None = None


@router.get("/jobs", operation_id="list_jobs", summary="List jobs", **replies.of(JobPage))
async def list_jobs(
    view: View,
    state: State,
    limit: Limit = 50,
    cursor: Annotated[str | None, Query(description="`next` of the page before.")] = None,
) -> Response:
    """The jobs of the tenant; the latest 100 are kept."""
    view.principal.need("explain")
    found = await state.jobs.page(view.principal.app_id, limit, cursor)
    return reply(JobPage(found, found[-1].id if len(found) == limit else None))


@router.post(
    "/jobs/backtest",
    operation_id="start_backtest",
    summary="Backtest recorded runs",
    **replies.of(Job, 202),
)
async def start_backtest(view: View, state: State, body: BacktestBody) -> Response:
    """Decide recorded runs again with a workflow as it is now. No model or tool is called, and
    nothing is stored."""
    view.principal.need("explain")
    flow = state.loom.workflows.flow(body.workflow)
    edited: Any = state.loom.workflows.folder(body.workflow) if flow is None else flow
    runs = await _chosen(view, body, {"workflow": body.workflow})

    async def work(run: str) -> Backtest:
        return await view.history.backtest(edited, [run])

    return await _begun(view, state, BACKTEST, runs, work=work, name=body.workflow)


@router.post(
    "/jobs/retry",
    operation_id="start_retry",
    summary="Retry many runs",
    **replies.of(Job, 202),
)
async def start_retry(view: View, state: State, body: RetryManyBody) -> Response:
    """Retry runs one after another, from what failed in each."""
    for scope in ("runs:write", "explain"):
        view.principal.need(scope)
    which: dict[str, Any] = {"status": "failed"}
    if body.workflow is not None:
        which["workflow"] = body.workflow
    runs = await _chosen(view, body, which)

    async def work(run: str) -> RetriedRun:
        try:
            handle = view.handle(run)
            await handle.retry(tools=body.tools)
            return RetriedRun(run, (await handle.summary()).status)
        except TurnloomError as error:
            return RetriedRun(run, problem=problem_of(error))

    return await _begun(view, state, RETRY, runs, work=work)


@router.get("/jobs/{id}", operation_id="read_job", summary="Read a job", **replies.of(Job))
async def read_job(id: JobId, view: View, state: State) -> Response:
    """How a job stands."""
    view.principal.need("explain")
    return reply(await state.jobs.find(view.principal.app_id, id))


@router.get(
    "/jobs/{id}/result",
    operation_id="read_job_result",
    summary="The result of a job so far",
    **replies.of(Backtest | RetryReport),
)
async def read_job_result(id: JobId, view: View, state: State) -> Response:
    """The result of a job: of the runs that are done."""
    view.principal.need("explain")
    job, found = await state.jobs.results(view.principal.app_id, id)
    return reply({"runs": found} if job.kind == RETRY else _joined(found, job.name))


@router.post(
    "/jobs/{id}/cancel", operation_id="cancel_job", summary="Cancel a job", **replies.of(Job)
)
async def cancel_job(id: JobId, view: View, state: State) -> Response:
    """Stop a job; what was done stays done."""
    view.principal.need("explain")
    return reply(await state.jobs.cancel(view.principal.app_id, id))


async def _begun(
    view: LoomView, state: State, kind: str, runs: Sequence[str], work: Any, name: str = ""
) -> Response:
    who = view.principal
    job = await state.jobs.start(who.app_id, kind, who.user_id, runs, work=work, name=name)
    return reply(job, 202, {"Location": f"/api/v1/jobs/{job.id}"})


async def _chosen(view: LoomView, body: ChosenRuns, which: dict[str, Any]) -> Sequence[str]:
    """The ids of the runs, those begun last first."""
    if (body.runs is None) == (body.last is None and body.since is None):
        raise UsageError("Say which runs: `runs`, or `last` and `since`.")
    if body.runs is not None:
        for run in body.runs:
            await view.handle(run).summary()
        return body.runs
    if body.since is not None:
        which["since"] = body.since
    return [each.run for each in await view.runs(body.last or MOST, **which)]


class _StoredBacktest(msgspec.Struct):
    """A backtest as it was stored."""

    runs: list[msgspec.Raw]
    refused: list[msgspec.Raw]


def _joined(found: Sequence[msgspec.Raw], name: str) -> dict[str, Any]:
    """One backtest of several."""
    parts = [msgspec.json.decode(each, type=_StoredBacktest) for each in found]
    runs = [run for each in parts for run in each.runs]
    refused = [run for each in parts for run in each.refused]
    return {"definition": name, "runs": runs, "refused": refused}
