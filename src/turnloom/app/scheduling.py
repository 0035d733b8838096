"""From the schedules of `turnloom.toml` and planned starts to runs."""

import os
import threading
from datetime import datetime, timedelta
from os import PathLike
from typing import Any, NamedTuple

import msgspec
from anyio import to_thread
from pydantic import BaseModel, ValidationError

from turnloom.app.arguments import as_path
from turnloom.app.starting import start_run
from turnloom.app.workflows import Workflows
from turnloom.errors import Conflict, DefinitionError, RunBusy, UnknownFlow, UsageError
from turnloom.flow.logic.flowing import FlowForm
from turnloom.flow.logic.flows import Flow
from turnloom.kernel.threads import LOADING, threads
from turnloom.kernel.values import canonical
from turnloom.log.spec import RunKey
from turnloom.runtime.schedules import Scheduling
from turnloom.schedules.logic import ScheduleReader
from turnloom.schedules.spec import PlannedStart, Schedule, StartRequest
from turnloom.wiring import Parts
from turnloom.wiring.adapters import adapter
from turnloom.wiring.doors import port_of
from turnloom.wiring.flow_files import file_of, flow_at, is_program, state_from
from turnloom.wiring.flows import ENTRY, flows_in
from turnloom.wiring.settings import FILE, file_text, table

_INPUT = "`input`"

# A file of code cannot be loaded twice at once in a process.
_ONE_AT_A_TIME = threading.Lock()

# A run that was started elsewhere, and has done nothing for so long, lost its process.
SETTLING = timedelta(seconds=30)


async def schedule_runs(parts: Parts, workflows: Workflows) -> Scheduling:
    """The service that starts what is due.

    Raises:
        DefinitionError: `[[schedule]]` is invalid; it has all problems.
        UsageError: the store has no `schedules`, or a package is missing.
    """
    starts = _Starts(parts, workflows)
    store, given = port_of(parts.store, "schedules"), table("schedule")
    if given is None:
        return Scheduling(store, parts.clock, starts.start)
    calendar = adapter("cronsim").CronCalendar()
    reader = ScheduleReader(FILE, file_text())
    found = reader.read(given, calendar.problem)
    for number, schedule in found:
        await starts.check(number, schedule, reader)
    if reader.problems:
        raise DefinitionError(FILE, sorted(reader.problems))
    declared = [schedule for _, schedule in found]
    return Scheduling(store, parts.clock, starts.start, calendar, declared=declared)


class _Target(NamedTuple):
    """What a schedule starts: a flow and the file to import it from, or a folder."""

    flow: Flow[Any] | None = None
    entry: str = ""
    folder: str = ""


class _Starts:
    """Starts runs by the names and paths of their workflows."""

    def __init__(self, parts: Parts, workflows: Workflows) -> None:
        self._parts = parts
        self._workflows = workflows

    async def check(self, number: int, schedule: Schedule, reader: ScheduleReader) -> None:
        """Note what keeps a schedule from starting: an unknown workflow, or another input."""
        try:
            target = await self._target(schedule.workflow)
        except (UsageError, DefinitionError) as error:
            said = f"Workflow {schedule.workflow!r} cannot be started: {error}"
            remedy = "Name a served workflow, a folder, or FILE.py:FLOW."
            reader.note(number, "workflow", "W201", (said, remedy))
            return
        text = None if schedule.input is None else canonical(schedule.input)
        try:
            if target.flow is not None:
                state_from(target.flow, text, _INPUT)
            elif text is not None:
                raise UsageError("A conversation begins without input; a flow has a state.")
        except UsageError as error:
            reader.note(number, "input", "W204", (str(error), "Correct or remove `input`."))

    async def start(self, request: StartRequest) -> RunKey:
        """Start a run under its id.

        Raises:
            Conflict: the run exists. It is driven, here if no other process does.
            TurnloomError: the run cannot start.
        """
        key, parts = RunKey(request.tenant, request.run), self._parts
        if (ends := await parts.runs.log.ends(key)) is not None:
            if parts.clock.now() - ends[1].at >= SETTLING:
                await self._continue(key)
            raise Conflict(f"Run {key.id!r} was started before.")
        target = await self._target(request.workflow, request.entry)
        state: BaseModel | None = None
        if target.flow is not None:
            if target.entry:
                parts.flows.declare(target.flow, target.entry)
            state = _state(target.flow, request)
        what = target.folder if target.flow is None else target.flow
        return await start_run(
            parts, what, state, request.user, tenant=request.tenant, id=request.run
        )

    async def _continue(self, run: RunKey) -> None:
        """Drive a run that another process started, if that process is gone."""
        try:
            await self._parts.runs.resume(run)
        except RunBusy:
            return

    async def _target(self, workflow: str, entry: str = "") -> _Target:
        """What a name or a path stands for.

        Raises:
            UsageError: it stands for nothing.
            DefinitionError: the code of a flow does not run.
        """
        if entry:
            return _Target(await to_thread.run_sync(_flow_in, entry, workflow), entry)
        if (flow := self._workflows.flow(workflow)) is not None:
            return _Target(flow)
        if is_program(workflow):
            found = await to_thread.run_sync(_flow_at, workflow, limiter=threads(LOADING))
            return _Target(found, _absolute(file_of(workflow)))
        return _Target(folder=_folder(workflow) or self._workflows.folder(workflow))


def _state(flow: Flow[Any], request: StartRequest) -> BaseModel:
    """The initial state of a request.

    Raises:
        UsageError: the flow has no such state, for example because it has changed.
    """
    if not request.state:
        return state_from(flow, request.input or None, _INPUT)
    try:
        return flow.state.model_validate_json(request.state, by_name=True)
    except ValidationError as error:
        raise UsageError(
            f"The planned state does not fit flow {flow.name!r}, which has changed since: {error}"
        ) from error


def _absolute(path: str) -> str:
    return os.path.abspath(path)


def _folder(path: str) -> str:
    """The folder at a path; empty if there is none."""
    return path if os.path.isdir(path) else ""


def _flow_at(path: str) -> Flow[Any]:
    with _ONE_AT_A_TIME:
        return flow_at(path)


def _flow_in(entry: str, name: str) -> Flow[Any]:
    """The flow of a name that a file builds."""
    if os.path.isfile(entry):
        with _ONE_AT_A_TIME:
            found = flows_in(entry)
        for flow in found:
            if flow.name == name:
                return flow
    raise UnknownFlow(f"{entry!r} builds no flow {name!r}. Restore it, or plan the start again.")


class PlannedRun(NamedTuple):
    """A run to be started later: its workflow and state, whose it is, and when it starts."""

    workflow: "str | PathLike[str] | Flow[Any]"
    state: BaseModel | None
    user: str
    tenant: str
    at: datetime


async def plan_run(parts: Parts, scheduling: Scheduling, asked: PlannedRun) -> RunKey:
    """Keep a start until its instant; the workflow is checked now, and read again then.

    Raises:
        DefinitionError: the workflow does not pass its check; nothing was planned.
        InvalidUpdate: it is not a state of the flow; nothing was planned.
        UsageError: the instant has no zone, or the store has no `schedules`.
    """
    run = RunKey(asked.tenant, parts.world.entropy.token())
    workflow, state, entry = "", "", ""
    if isinstance(asked.workflow, str | PathLike):
        workflow = _absolute(as_path(asked.workflow, "The place of the workflow"))
        await parts.definitions.load(workflow)
    else:
        loaded = parts.flows.declare(asked.workflow)
        assert isinstance(loaded.workflow, FlowForm)
        given = asked.state if asked.state is not None else asked.workflow.state()
        state = msgspec.json.encode(loaded.workflow.states.dump(given)).decode()
        workflow = loaded.workflow.name
        entry = loaded.root.removeprefix(ENTRY) if loaded.root.startswith(ENTRY) else ""
    start = PlannedStart(
        run.tenant, run.id, asked.at, workflow, user=asked.user, state=state, entry=entry
    )
    await scheduling.plan(start)
    return run
