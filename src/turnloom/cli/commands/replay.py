"""`turnloom replay`: decide again what runs decided, from their logs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import msgspec
import typer

from turnloom.app import Loom
from turnloom.app.choosing import RunChoice
from turnloom.cli.command import as_text
from turnloom.cli.stored import Json, StoredRunsCommand, find_run, no_runs
from turnloom.cli.tables import lay_out
from turnloom.cli.terminal import Terminal, safe
from turnloom.cli.times import instant_or_age
from turnloom.errors import TurnloomError, UsageError
from turnloom.explain.spec.replay import SIDES, Replay

# Runs that `--all` reads at a time.
PAGE = 100


@dataclass(frozen=True, kw_only=True)
class ReplayCommand(StoredRunsCommand):
    """Decide everything again from the logs of runs, and show the first difference. No model or
    tool is called, and nothing is stored."""

    runs: Annotated[
        list[str] | None,
        typer.Argument(metavar="RUN", help="Runs: ids, their beginnings, or `last`."),
    ] = None
    all: Annotated[bool, typer.Option("--all", help="Every run, instead of some.")] = False
    workflow: Annotated[
        str | None,
        typer.Option(metavar="NAME", callback=as_text, help="With --all: of this workflow."),
    ] = None
    since: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="With --all: begun since then, as 1h or in ISO 8601."),
    ] = None
    json: Json = False

    async def act(self, app: Loom, terminal: Terminal) -> int:
        """Replay the runs, and print a line for each."""
        if self.all == bool(self.runs):
            raise UsageError("Say which runs to replay, or `--all` for every run.")
        if not self.all and (self.workflow is not None or self.since is not None):
            raise UsageError("--workflow and --since choose among all runs. Add `--all`.")
        chosen = await self._all(app) if self.all else await self._named(app)
        if not chosen:
            terminal.tell(safe(no_runs(self.app_id)))
        codes = [await self._replay(app, run, terminal) for run in chosen]
        return max(codes, default=0)

    async def _named(self, app: Loom) -> list[str]:
        return [await find_run(app, each, self.app_id) for each in self.runs or ()]

    async def _all(self, app: Loom) -> list[str]:
        which = RunChoice()
        if self.workflow is not None:
            which["workflow"] = self.workflow
        if since := instant_or_age(self.since, "--since"):
            which["since"] = since
        found: list[str] = []
        while True:
            before = found[-1] if found else None
            page = await app.runs(PAGE, before=before, app_id=self.app_id, **which)
            found += [each.run for each in page]
            if len(page) < PAGE:
                return found

    async def _replay(self, app: Loom, run: str, terminal: Terminal) -> int:
        """Replay a run; 1 if it is decided otherwise now, 2 if it cannot be replayed here."""
        try:
            replay = await app.history.replay(run, app_id=self.app_id)
        except TurnloomError as error:
            if not self.all and len(self.runs or ()) == 1:
                raise
            terminal.fail(f"Run {run} cannot be replayed: {error}")
            return 2
        if self.json:
            terminal.emit(msgspec.json.encode(replay))
        else:
            _show(replay, terminal)
        return 0 if replay.divergence is None else 1


def _show(replay: Replay, terminal: Terminal) -> None:
    divergence = replay.divergence
    terminal.show(safe(replay.headline, "bold red" if divergence else ""))
    if divergence is None:
        return
    fields: Sequence[tuple[str, ...]] = [each.cells for each in divergence.fields]
    for part in lay_out(SIDES, fields, tuple, terminal.out.width):
        terminal.show(part)
    for line in replay.about:
        terminal.show(safe(line, "yellow"))
