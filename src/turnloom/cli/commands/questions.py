"""`turnloom questions`: open questions of runs."""

from dataclasses import dataclass
from typing import Annotated

import msgspec
import typer

from turnloom.agents.spec import Question
from turnloom.app import Loom
from turnloom.cli.command import as_text
from turnloom.cli.questions import gist, is_asked
from turnloom.cli.stored import Json, StoredRunsCommand, find_run
from turnloom.cli.terminal import Terminal, joined, safe
from turnloom.explain.spec.text import moment
from turnloom.log.logic import BROKEN


@dataclass(frozen=True, kw_only=True)
class QuestionsCommand(StoredRunsCommand):
    """List the open questions of a run, or of all runs, the oldest of each coming first."""

    run: Annotated[
        str | None,
        typer.Argument(metavar="RUN", help="A run: its id, the beginning of it, or `last`."),
    ] = None
    user: Annotated[
        str | None,
        typer.Option(metavar="ID", callback=as_text, help="Only what this person is asked."),
    ] = None
    json: Json = False

    async def act(self, app: Loom, terminal: Terminal) -> int:
        """Print the list."""
        listed = 0
        for run in await self._runs(app):
            for question in await app.handle(run, app_id=self.app_id).questions():
                if self.user is None or is_asked(question, self.user):
                    self._show(run, question, terminal)
                    listed += 1
        if not listed:
            terminal.tell("No question is open.")
        return 0

    async def _runs(self, app: Loom) -> list[str]:
        if self.run is not None:
            return [await find_run(app, self.run, self.app_id)]
        unfinished = await app.runs(unfinished=True, app_id=self.app_id)
        return [each.run for each in unfinished if each.status != BROKEN]

    def _show(self, run: str, question: Question, terminal: Terminal) -> None:
        if self.json:
            asked: dict[str, object] = {"run": run, **msgspec.to_builtins(question)}
            terminal.emit(msgspec.json.encode(asked))
            return
        until = f", until {moment(question.due)}" if question.due else ""
        terminal.show(joined((run, "bold"), f" {question.id} (of {question.to}{until})"))
        if said := gist(question):
            terminal.show(safe(f"  {said}"))
