"""`turnloom schedule`: schedules and planned starts."""

import asyncio
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import msgspec
import typer
from rich.text import Text

from turnloom.app import Loom
from turnloom.cli.apps import opened_app
from turnloom.cli.command import Command, EngineName, ModelName, as_text
from turnloom.cli.stored import AppId, Json, StoredRunsCommand, StoreFile, present_store
from turnloom.cli.tables import lay_out
from turnloom.cli.terminal import Terminal, safe
from turnloom.explain.spec.text import moment
from turnloom.log.spec import LOCAL
from turnloom.schedules.spec import PlannedStart, ScheduleStatus, StartedFiring

SUMMARY = "List schedules and planned starts, and start what is due."

_COLUMNS = ("schedule", "cron", "zone", "next", "last run", "workflow")
_PLANNED = ("run", "starts", "user", "workflow", "problem")
_WHOLE = ("schedule", "cron", "next", "run", "starts")

AppName = Annotated[
    str | None,
    typer.Option(
        "--app",
        metavar="MODULE:NAME",
        callback=as_text,
        help="A `Loom` with flows, or a function that is given one.",
    ),
]


@dataclass(frozen=True, kw_only=True)
class ScheduleCommand(Command):
    """A command on the schedules of `turnloom.toml`."""

    store: StoreFile = None
    app: AppName = None
    app_id: AppId = LOCAL
    json: Json = False

    def carry_out(self, terminal: Terminal) -> int:
        """Run the command with the app open, and return the exit code."""
        return asyncio.run(self._open(terminal))

    async def _open(self, terminal: Terminal) -> int:
        async with opened_app(self.app, **self.settings()) as app:
            return await self.act(app, terminal)

    def settings(self) -> dict[str, str | None]:
        """The settings of the app, if it is not named."""
        return {"store": present_store(self.store) if self.app is None else self.store}

    @abstractmethod
    async def act(self, app: Loom, terminal: Terminal) -> int:
        """Run the command, and return the exit code."""


@dataclass(frozen=True, kw_only=True)
class ScheduleListCommand(ScheduleCommand):
    """List the schedules of a tenant with their next and last firings, and its planned starts."""

    limit: Annotated[int, typer.Option(min=1, help="How many planned starts at most.")] = 20

    async def act(self, app: Loom, terminal: Terminal) -> int:
        """Print the lists."""
        schedules = await app.schedules.list(app_id=self.app_id)
        planned = await app.schedules.planned(self.limit, app_id=self.app_id)
        if self.json:
            terminal.emit(msgspec.json.encode({"schedules": schedules, "planned": planned}))
            return 0
        width = terminal.out.width
        if schedules:
            for part in lay_out(_COLUMNS, schedules, _cells, width, whole=_WHOLE):
                terminal.show(part)
        if planned:
            for part in lay_out(_PLANNED, planned, _planned, width, whole=_WHOLE):
                terminal.show(part)
        if not schedules and not planned:
            terminal.tell(safe("Nothing is scheduled. Declare `[[schedule]]` in turnloom.toml."))
        _tell_problems(schedules, terminal)
        return 0


def _tell_problems(schedules: Sequence[ScheduleStatus], terminal: Terminal) -> None:
    for each in schedules:
        if each.last is not None and each.last.error:
            name = each.schedule.name
            terminal.fail(f"Schedule {name!r} could not start a run: {each.last.error}")


def _cells(each: ScheduleStatus) -> tuple[str | Text, ...]:
    schedule, last = each.schedule, each.last
    return (
        safe(schedule.name, "bold"),
        schedule.cron,
        schedule.timezone,
        moment(each.next) if each.next else "never",
        last.run if last is not None and last.run else "none",
        schedule.workflow,
    )


def _planned(each: PlannedStart) -> tuple[str | Text, ...]:
    return safe(each.run, "bold"), moment(each.at), each.user, each.workflow, each.error


@dataclass(frozen=True, kw_only=True)
class ScheduleRunCommand(ScheduleCommand):
    """Start what is due, or one schedule now, and drive the runs until they end or wait."""

    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="A schedule to start now; without it, what is due."),
    ] = None
    model: ModelName = None
    engine: EngineName = None

    def settings(self) -> dict[str, str | None]:
        """The settings of the app; a store is created if there is none."""
        return {"store": self.store, "model": self.model, "engine": self.engine}

    async def act(self, app: Loom, terminal: Terminal) -> int:
        """Start the runs, wait for them, and print them."""
        if self.name is None:
            fired = await app.schedules.fire_due()
        else:
            fired = [await app.schedules.fire(self.name, app_id=self.app_id)]
        for each in fired:
            if not each.error:
                await app.schedules.rested(each)
        if self.json:
            terminal.emit(msgspec.json.encode(fired))
        elif not fired:
            terminal.tell(safe("Nothing is due."))
        for each in () if self.json else fired:
            _report(each, terminal)
        return 1 if any(each.error for each in fired) else 0


def _report(each: StartedFiring, terminal: Terminal) -> None:
    what = each.schedule or "planned start"
    if each.error:
        terminal.fail(f"{what}: no run started. {each.error}")
    else:
        terminal.show(safe(f"{what}: run {each.run}, due {moment(each.at)}."))


@dataclass(frozen=True, kw_only=True)
class ScheduleCancelCommand(StoredRunsCommand):
    """Cancel a planned start."""

    run: Annotated[str, typer.Argument(metavar="RUN", help="Its run, as `list` shows it.")]

    async def act(self, app: Loom, terminal: Terminal) -> int:
        """Cancel it, and say whether it was there."""
        if await app.schedules.cancel(self.run, app_id=self.app_id):
            terminal.show(safe(f"Run {self.run} will not start."))
            return 0
        terminal.fail(f"No start of a run {self.run!r} is planned.", "`turnloom schedule list`.")
        return 1
