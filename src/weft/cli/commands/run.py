"""`weft run`: a workflow as a conversation in the terminal."""

from dataclasses import dataclass
from typing import Annotated

import typer

from weft.app import Weft
from weft.cli.command import as_text
from weft.cli.conversing import ConversingCommand
from weft.cli.entrances import entrance
from weft.cli.invocation import again
from weft.cli.problems import located
from weft.cli.terminal import Terminal, safe


@dataclass(frozen=True, kw_only=True)
class Run(ConversingCommand):
    """Run a workflow folder, and converse with it here."""

    path: Annotated[
        str,
        typer.Argument(
            metavar="PATH", help="The workflow folder, or a folder of such with one entry point."
        ),
    ]
    user: Annotated[str, typer.Option(metavar="ID", callback=as_text, help="Who converses.")] = (
        "local"
    )
    app: Annotated[
        str, typer.Option(metavar="ID", callback=as_text, help="On behalf of which app.")
    ] = "local"
    strict: Annotated[
        bool | None,
        typer.Option(
            "--strict/--no-strict", help="Whether invalid context variables keep it from starting."
        ),
    ] = None

    def open(self) -> Weft:
        """The app, with the model and as strict as it was asked for."""
        return Weft(store=self.store, model=self.model, strict=self.strict)

    async def act(self, app: Weft, terminal: Terminal) -> int:
        """Start the run, attend to it, and say how to go on."""
        path = entrance(self.path)
        with located(path):
            run = await app.start(path, user_id=self.user, app_id=self.app)
        if (await app.log(run.id))[0].data.set_aside:
            told = "The run begins without its context variables, which do not pass their check"
            terminal.tell(safe(f"{told}: {again('check', path)}", "yellow"))
        return await self.converse(app, run, terminal)
