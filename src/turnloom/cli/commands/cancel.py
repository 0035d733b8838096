"""`turnloom cancel`: cancel a run."""

import asyncio
from dataclasses import dataclass
from typing import Annotated

import typer

from turnloom.app import Loom
from turnloom.cli.command import as_text
from turnloom.cli.stored import RunId, StoredRunsCommand, find_run, telling_of_waits
from turnloom.cli.terminal import Terminal, safe
from turnloom.log.logic import status_of

# Seconds that the driver has to end the run.
PATIENCE = 10.0


@dataclass(frozen=True, kw_only=True)
class CancelCommand(StoredRunsCommand):
    """End a run now, wherever it is driven."""

    run: RunId
    reason: Annotated[
        str, typer.Option(metavar="TEXT", callback=as_text, help="Why; it is recorded.")
    ] = ""

    async def act(self, app: Loom, terminal: Terminal) -> int:
        """Cancel the run, and say so once it is stored."""
        run = await find_run(app, self.run, self.app_id)
        handle = app.handle(run, app_id=self.app_id)
        async with telling_of_waits(handle, terminal):
            was_open = await handle.cancel(reason=self.reason)
        if not was_open:
            status = status_of((await app.history.events(run, app_id=self.app_id))[-1])
            terminal.show(safe(f"Run {run} had ended before: {status}. Nothing was changed."))
            return 0
        try:
            async with asyncio.timeout(PATIENCE):
                end = await handle.finished()
        except TimeoutError:
            terminal.fail(
                f"Run {run} was asked to end, and its driver has not ended it yet.",
                f"See its status: {self.again('explain', run)}",
            )
            return 1
        left = await handle.not_undone()
        if not left:
            terminal.show(safe(f"Run {run} is {status_of(end)}."))
            return 0
        lines = [f"  {each.place}: {each.error}: {each.message}" for each in left]
        terminal.fail(f"Run {run} is {status_of(end)}, but not all of it is undone:", *lines)
        return 1
