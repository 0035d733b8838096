"""`turnloom resume`: continue a run where its log ends."""

from dataclasses import dataclass
from typing import Annotated

import typer

from turnloom.app import Loom
from turnloom.cli.command import as_text
from turnloom.cli.conversing import ConversingCommand
from turnloom.cli.stored import RunId, find_run, telling_of_waits
from turnloom.cli.terminal import Terminal, safe
from turnloom.errors import DefinitionError
from turnloom.log.events import ENDS
from turnloom.log.logic import started_of, status_of


@dataclass(frozen=True, kw_only=True)
class ResumeCommand(ConversingCommand):
    """Continue a run that was interrupted or waits, and converse with it here."""

    run: RunId
    user: Annotated[
        str | None, typer.Option(metavar="ID", callback=as_text, help="Who answers here.")
    ] = None

    async def act(self, app: Loom, terminal: Terminal) -> int:
        """Resume the run, follow it, and say how to continue."""
        run = await find_run(app, self.run, self.app_id)
        events = await app.history.events(run, app_id=self.app_id)
        if events[-1].kind in ENDS:
            status = status_of(events[-1])
            terminal.tell(safe(f"Run {run} has ended: {status}. There is nothing to resume."))
            terminal.tell(safe(f"  {self.again('explain', run)}"))
            return 0 if status == "finished" else 1
        loaded = await app.history.definition(run, app_id=self.app_id)
        if loaded.lacking:
            raise DefinitionError(loaded.name, loaded.lacking)
        if loaded.changed_code:
            files = ", ".join(loaded.changed_code)
            terminal.tell(safe(f"Code has changed since the run began: {files}.", "yellow"))
        async with telling_of_waits(app.handle(run, app_id=self.app_id), terminal):
            handle = await app.resume(run, app_id=self.app_id)
        user = self.user or started_of(events).user
        return await self.converse(app, handle, terminal, user, before=events)
