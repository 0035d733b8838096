"""Schedules, their firings, and planned starts."""

from datetime import datetime
from typing import Literal

import msgspec

from turnloom.kernel.values import Json
from turnloom.log.spec import LOCAL

Missed = Literal["skip", "once"]


class Schedule(msgspec.Struct, frozen=True):
    """A workflow that starts by itself whenever a cron expression says so.

    `missed` says what becomes of firings that no process was there for: `skip` drops them, `once`
    makes up for them with one run.
    """

    name: str
    workflow: str
    cron: str
    timezone: str = "UTC"
    input: Json = None
    missed: Missed = "skip"
    user: str = "local"
    tenant: str = LOCAL


class Firing(msgspec.Struct, frozen=True):
    """The instant up to which a schedule has fired, the run that it started then, and the problem
    if it could not. Without a run, it is the instant from which the schedule counts."""

    at: datetime
    run: str = ""
    error: str = ""


class PlannedStart(msgspec.Struct, frozen=True):
    """A run that starts at an instant. `workflow` is a folder, or a flow with its initial `state`
    as JSON; `entry` is the file that builds the flow. `error` says why it did not start."""

    tenant: str
    run: str
    at: datetime
    workflow: str
    user: str
    state: str = ""
    entry: str = ""
    error: str = ""


class StartRequest(msgspec.Struct, frozen=True):
    """A run to start under a given id. The initial state of a flow is `input`, as people write it,
    or `state`, as it was stored; both are JSON."""

    tenant: str
    run: str
    workflow: str
    user: str
    input: str = ""
    state: str = ""
    entry: str = ""


class StartedFiring(msgspec.Struct, frozen=True):
    """A due start: the schedule, or none for a planned start; its run, or why there is none."""

    schedule: str
    tenant: str
    at: datetime
    run: str
    error: str = ""


class ScheduleStatus(msgspec.Struct, frozen=True):
    """A schedule with its next firing and its last one."""

    schedule: Schedule
    next: datetime | None
    last: Firing | None = None
