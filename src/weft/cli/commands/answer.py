"""`weft answer`: an answer to what a run asked."""

from dataclasses import dataclass
from typing import Annotated

import typer

from weft.app import Weft
from weft.cli.command import as_text
from weft.cli.stored import RunId, StoreCommand, find_run
from weft.cli.terminal import Terminal, safe
from weft.runtime.spec import Delivery


@dataclass(frozen=True, kw_only=True)
class Answer(StoreCommand):
    """Answer the open question of a run, from any terminal."""

    run: RunId
    text: Annotated[str, typer.Argument(metavar="TEXT", callback=as_text, help="The answer.")]
    question: Annotated[
        str | None, typer.Option(metavar="ID", help="Which question, if not the open one.")
    ] = None

    async def act(self, app: Weft, terminal: Terminal) -> int:
        """Deliver the answer, and say who goes on with the run."""
        run = await find_run(app, self.run)
        delivery = await app.run(run).answer(self.question, self.text)
        if delivery is Delivery.TAKEN:
            terminal.show(safe(f"Answered. Run {run} goes on where it is attended to."))
        elif delivery is Delivery.REPEATED:
            terminal.show(safe(f"Run {run} had that answer before; the first one counts."))
        else:
            terminal.show(safe(f"Answered. Nobody attends to run {run}; go on with it here:"))
            terminal.show(safe(f"  {self.again('resume', run)}"))
        return 0
