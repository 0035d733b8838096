"""Schedules: runs that start by themselves."""

from typing import Annotated

import msgspec
from fastapi import APIRouter, Path, Response

from turnloom.schedules.spec import PlannedStart, ScheduleStatus, StartedFiring
from turnloom.server.context import Limit, View
from turnloom.server.replies import replies, reply
from turnloom.server.routes.runs import RunId

router = APIRouter(tags=["schedules"])


class ScheduleList(msgspec.Struct, frozen=True):
    """Schedules, with their next and their last firing."""

    items: list[ScheduleStatus]


class PlannedList(msgspec.Struct, frozen=True):
    """Planned starts, the next one first."""

    items: list[PlannedStart]


class CancelledStart(msgspec.Struct, frozen=True):
    """Whether the start was planned."""

    was_planned: bool


@router.get(
    "/schedules",
    operation_id="list_schedules",
    summary="List schedules",
    **replies.of(ScheduleList),
)
async def list_schedules(view: View) -> Response:
    """The schedules of `turnloom.toml`."""
    return reply(ScheduleList(await view.schedules.list()))


@router.post(
    "/schedules/{name}/fire",
    operation_id="fire_schedule",
    summary="Start a schedule now",
    **replies.of(StartedFiring, 202),
)
async def fire_schedule(
    name: Annotated[str, Path(description="The name of a schedule.", max_length=1000)], view: View
) -> Response:
    """Start a run of a schedule now, beside its firings."""
    return reply(await view.schedules.fire(name), 202)


@router.get(
    "/planned", operation_id="list_planned", summary="Planned starts", **replies.of(PlannedList)
)
async def list_planned(view: View, limit: Limit = 50) -> Response:
    """Runs that start at an instant."""
    return reply(PlannedList(await view.schedules.planned(limit)))


@router.post(
    "/planned/{run}/cancel",
    operation_id="cancel_planned",
    summary="Cancel a planned start",
    **replies.of(CancelledStart),
)
async def cancel_planned(run: RunId, view: View) -> Response:
    """Cancel a start that is planned."""
    return reply(CancelledStart(await view.schedules.cancel(run)))
