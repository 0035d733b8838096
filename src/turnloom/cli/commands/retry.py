"""`turnloom retry`: continue a run that failed, or do a part of a run again."""

from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Annotated

import typer

from turnloom.app import Loom
from turnloom.app.choosing import RunChoice
from turnloom.cli.command import as_text
from turnloom.cli.conversing import ConversingCommand
from turnloom.cli.stored import find_run
from turnloom.cli.terminal import Terminal, joined, safe
from turnloom.cli.times import instant_or_age
from turnloom.errors import DefinitionError, TurnloomError, UsageError
from turnloom.explain.logic.describe import describe
from turnloom.log.events import ENDS, RunPaused, RunRetried
from turnloom.log.logic import standing, started_of, status_of
from turnloom.log.spec import Event
from turnloom.runtime.retrying import ASK, LIVE


@dataclass(frozen=True, kw_only=True)
class RetryCommand(ConversingCommand):
    """Continue a run that failed or was cancelled, from what failed: what completed is not done
    again."""

    run: Annotated[
        str | None,
        typer.Argument(metavar="[RUN]", help="A run: its id, the beginning of it, or `last`."),
    ] = None
    from_: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="TURN|STEP",
            callback=as_text,
            help="Do everything again from this turn (a number) or step (a name) on.",
        ),
    ] = None
    at: Annotated[
        int | None,
        typer.Option(metavar="SEQ", min=1, help="Do everything again after this event."),
    ] = None
    folder: Annotated[
        str | None,
        typer.Option(
            "--with", metavar="FOLDER", callback=as_text, help="Continue with this definition."
        ),
    ] = None
    budget: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=LIMIT", help="Raise a limit, as tokens=50000; may be repeated."),
    ] = None
    tools: Annotated[
        str | None,
        typer.Option(
            metavar="POLICY",
            callback=as_text,
            help="Calls made again, with other arguments: `ask` before each (without a terminal, "
            "they are refused), `recorded` refuses them; `live` makes all calls. By default `ask` "
            "with --from and --at, else `live`.",
        ),
    ] = None
    failed: Annotated[
        bool, typer.Option("--failed", help="Retry every failed run, instead of one.")
    ] = False
    since: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="With --failed: begun since then, as 1h or in ISO 8601."),
    ] = None
    workflow: Annotated[
        str | None,
        typer.Option(metavar="NAME", callback=as_text, help="With --failed: of this workflow."),
    ] = None

    async def act(self, app: Loom, terminal: Terminal) -> int:
        """Retry one run and follow it, or retry many."""
        if self.failed == (self.run is not None):
            raise UsageError("Say which run to retry, or `--failed` for all that failed.")
        if not self.failed and (self.since or self.workflow):
            raise UsageError("--since and --workflow choose among failed runs. Add `--failed`.")
        return await (self._all(app, terminal) if self.failed else self._one(app, terminal))

    async def _one(self, app: Loom, terminal: Terminal) -> int:
        """Retry a run, follow it, and say how to continue."""
        run = await find_run(app, self.run or "", self.app_id)
        loaded = await app.history.definition(run, app_id=self.app_id)
        if loaded.lacking:
            raise DefinitionError(loaded.name, loaded.lacking)
        await self._retry(app, run)
        events = await app.history.events(run, app_id=self.app_id)
        before = _before(standing(events))
        if not (self.json or self.quiet):
            terminal.show(safe(f"  {describe(before[-1].data)}"))
        handle = app.handle(run, app_id=self.app_id)
        return await self.converse(app, handle, terminal, started_of(events).user, before=before)

    async def _all(self, app: Loom, terminal: Terminal) -> int:
        """Retry failed runs one after another, and say of each how it ended."""
        which = RunChoice(status="failed")
        if self.workflow is not None:
            which["workflow"] = self.workflow
        if since := instant_or_age(self.since, "--since"):
            which["since"] = since
        found = await app.runs(app_id=self.app_id, **which)
        if not found:
            terminal.tell(safe("No run failed that these options choose."))
        statuses = [await self._again(app, each.run, terminal) for each in reversed(found)]
        return 1 if any(status not in ("finished", "waiting") for status in statuses) else 0

    async def _again(self, app: Loom, run: str, terminal: Terminal) -> str:
        """Retry a run, follow it until it ends or waits, and say how it stands."""
        handle = app.handle(run, app_id=self.app_id)
        try:
            position = (await app.history.events(run, app_id=self.app_id))[-1].seq
            await self._retry(app, run)
            async with aclosing(handle.events(position)) as events:
                async for event in events:
                    if event.kind in (*ENDS, RunPaused.kind):
                        terminal.show(joined((run, "bold"), f" {status_of(event)}"))
                        return status_of(event)
        except TurnloomError as error:
            terminal.fail(f"Run {run} cannot be retried: {error}")
        return ""

    async def _retry(self, app: Loom, run: str) -> None:
        part, limits = _part(self.from_), _limits(self.budget or ())
        is_whole = part is None and self.at is None
        tools = self.policy(self.tools or (LIVE if is_whole else ASK))
        handle = app.handle(run, app_id=self.app_id)
        await handle.retry(part, at=self.at, folder=self.folder, budget=limits, tools=tools)


def _before(events: Sequence[Event]) -> Sequence[Event]:
    """What counts of a run up to its last retry."""
    last = max(event.seq for event in events if event.kind == RunRetried.kind)
    return [event for event in events if event.seq <= last]


def _part(said: str | None) -> int | str | None:
    """A turn, by its number, or a step, by its name."""
    return int(said) if said and said.isascii() and said.isdigit() else said


def _limits(said: Sequence[str]) -> dict[str, float]:
    """Limits of a budget, as `tokens=50000`.

    Raises:
        UsageError: one is no number.
    """
    limits: dict[str, float] = {}
    for each in said:
        name, _, limit = each.partition("=")
        try:
            limits[name.strip()] = float(limit)
        except ValueError:
            raise UsageError(
                f"--budget is {each!r}. Write a name and a number, as in tokens=50000."
            ) from None
    return limits
