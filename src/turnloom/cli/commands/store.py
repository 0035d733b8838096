"""`turnloom store`: what a store holds, looked after."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

import msgspec
import typer

from turnloom.app import Loom
from turnloom.cli.stored import Json, StoreCommand, find_run
from turnloom.cli.terminal import Terminal, joined, safe
from turnloom.runtime.spec import VerifiedRun


class Deed(StrEnum):
    """What can be done with a store."""

    verify = "verify"


@dataclass(frozen=True, kw_only=True)
class Store(StoreCommand):
    """Verify that a store still holds what was stored: every event of every run, unchanged."""

    deed: Annotated[Deed, typer.Argument(metavar="WHAT", help="`verify`.")]
    run: Annotated[
        str | None,
        typer.Argument(metavar="RUN", help="Only this run: its id, the beginning, or `last`."),
    ] = None
    json: Json = False

    async def act(self, app: Loom, terminal: Terminal) -> int:
        """Verify the runs of the tenant, and list those that are damaged."""
        run = self.run and await find_run(app, self.run, self.app_id)
        runs, events = 0, 0
        damaged: list[VerifiedRun] = []
        async for verified in app.history.verify(run, app_id=self.app_id):
            runs += 1
            events += verified.events
            if verified.problems:
                damaged.append(verified)
        if self.json:
            told = {"runs": runs, "events": events, "damaged": damaged}
            terminal.emit(msgspec.json.encode(told))
            return 1 if damaged else 0
        for each in damaged:
            for problem in each.problems:
                terminal.show(joined((each.run, "bold"), f": {problem}"))
        if damaged:
            terminal.fail(f"Damaged runs: {len(damaged)} of {runs}. Restore them from a backup.")
            return 1
        terminal.show(safe(f"All as stored. Runs: {runs}, events: {events}."))
        return 0
