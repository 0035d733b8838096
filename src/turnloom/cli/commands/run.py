"""`turnloom run`: run a workflow in the terminal: a conversation, or a flow."""

from dataclasses import dataclass
from typing import Annotated

import typer
from anyio import to_thread

from turnloom.app import Loom
from turnloom.app import Run as Started
from turnloom.cli.command import as_text
from turnloom.cli.conversing import ConversingCommand
from turnloom.cli.invocation import again
from turnloom.cli.problems import located
from turnloom.cli.programs import entrance, refuse_exits, state_of
from turnloom.cli.terminal import Terminal, safe
from turnloom.errors import UsageError
from turnloom.log.logic import started_of
from turnloom.wiring.flow_files import file_of, flow_at, is_program


@dataclass(frozen=True, kw_only=True)
class RunCommand(ConversingCommand):
    """Run a workflow folder or a flow, and converse with it here."""

    path: Annotated[
        str,
        typer.Argument(
            metavar="PATH",
            help="The workflow folder, a folder of such with one entry point, or FILE.py[:FLOW].",
        ),
    ]
    input: Annotated[
        str | None,
        typer.Option(
            metavar="JSON|@FILE", callback=as_text, help="The state that a flow begins with."
        ),
    ] = None
    user: Annotated[str, typer.Option(metavar="ID", callback=as_text, help="Who converses.")] = (
        "local"
    )
    strict: Annotated[
        bool | None,
        typer.Option(
            "--strict/--no-strict", help="Whether invalid context variables keep it from starting."
        ),
    ] = None

    def carry_out(self, terminal: Terminal) -> int:
        """Run it with the store open, once its code is known not to end this process."""
        refuse_exits(self.path)
        return super().carry_out(terminal)

    def open(self) -> Loom:
        """The app, with the requested model, engine and strictness."""
        return Loom(store=self.store, model=self.model, engine=self.engine, strict=self.strict)

    async def act(self, app: Loom, terminal: Terminal) -> int:
        """Start the run, follow it, and say how to continue."""
        if is_program(self.path):
            return await self.converse(app, await self._start_flow(app), terminal, self.user)
        if self.input is not None:
            raise UsageError("--input is the state of a flow: `turnloom run FILE.py --input …`.")
        path = entrance(self.path)
        with located(path):
            run = await app.start(path, user_id=self.user, app_id=self.app_id)
        if started_of(await app.history.events(run.id, app_id=run.app_id)).set_aside:
            notice = "The run starts without its context variables, which are invalid"
            terminal.tell(safe(f"{notice}: {again('check', path)}", "yellow"))
        return await self.converse(app, run, terminal, self.user)

    async def _start_flow(self, app: Loom) -> Started:
        """A run of the named flow."""
        with located(file_of(self.path)):
            flow = await to_thread.run_sync(flow_at, self.path)
            state = state_of(flow, self.input)
            app.register_flow(flow, entry=file_of(self.path))
            return await app.start(flow, state, user_id=self.user, app_id=self.app_id)
