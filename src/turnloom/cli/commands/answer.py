"""`turnloom answer`: an answer to what a run asked."""

from dataclasses import dataclass
from typing import Annotated, Any

import typer

from turnloom.agents.spec import Question
from turnloom.app import Loom
from turnloom.cli.command import as_text
from turnloom.cli.forms import Form, Given
from turnloom.cli.stored import RunId, StoreCommand, find_run, telling_of_waits
from turnloom.cli.terminal import Terminal, safe
from turnloom.errors import UsageError
from turnloom.runtime.spec import Delivery


@dataclass(frozen=True, kw_only=True)
class Answer(StoreCommand):
    """Answer the open question of a run, from any terminal."""

    run: RunId
    answer: Annotated[
        str,
        typer.Argument(
            metavar="ANSWER", callback=as_text, help="A text; JSON or a word if a tool asks."
        ),
    ]
    question: Annotated[
        str | None, typer.Option(metavar="ID", help="Which question, if not the open one.")
    ] = None
    user: Annotated[
        str | None, typer.Option(metavar="ID", callback=as_text, help="Who answers.")
    ] = None

    async def act(self, app: Loom, terminal: Terminal) -> int:
        """Deliver the answer, and say who goes on with the run."""
        run = await find_run(app, self.run, self.app_id)
        handle = app.handle(run, app_id=self.app_id)
        asked = await handle.question(user_id=self.user)
        value = self._value(asked)
        async with telling_of_waits(handle, terminal):
            delivery = await handle.answer(self.question, value, user_id=self.user)
        if delivery is Delivery.TAKEN:
            terminal.show(safe(f"Answered. Run {run} goes on where it is attended to."))
        elif delivery is Delivery.KEPT:
            terminal.show(safe(f"Answered. Run {run} goes on with the program of its board."))
        elif delivery is Delivery.REPEATED:
            terminal.show(safe(f"Run {run} had that answer before; the first one counts."))
        else:
            terminal.show(safe(f"Answered. Nobody attends to run {run}; go on with it here:"))
            terminal.show(safe(f"  {self.again('resume', run)}"))
        return 0

    def _value(self, asked: Question | None) -> Any:
        """The answer as the question takes it.

        Raises:
            UsageError: it does not fit.
        """
        if asked is None or not asked.tool or self.question not in (None, asked.id):
            return self.answer
        form = Form(asked)
        read = form.read(self.answer)
        if isinstance(read, Given):
            return read.value
        raise UsageError(f"This does not answer {asked.id!r}: {read}. It takes {form.demand}.")
