"""`turnloom feedback`: say what you think of a run, or list what people think."""

from dataclasses import dataclass
from typing import Annotated

import msgspec
import typer

from turnloom.app import Loom
from turnloom.cli.command import as_text
from turnloom.cli.stored import Json, RunId, StoredRunsCommand, find_run
from turnloom.cli.tables import lay_out
from turnloom.cli.terminal import Terminal, safe
from turnloom.errors import UsageError
from turnloom.explain.spec.text import moment, one_line
from turnloom.feedback.spec import Feedback

_COLUMNS = ("turn", "name", "score or label", "who", "when", "comment")


@dataclass(frozen=True, kw_only=True)
class FeedbackCommand(StoredRunsCommand):
    """Say what you think of a run or a turn: a score or a label. Without both, list what people
    said. A second one of the same person, name and turn replaces the first."""

    run: RunId
    turn: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="About this turn, not the whole run.")
    ] = None
    name: Annotated[
        str, typer.Option(metavar="NAME", callback=as_text, help="What it is about.")
    ] = "quality"
    score: Annotated[
        float | None, typer.Option(metavar="NUMBER", help="A number, as 0.8 or 5.")
    ] = None
    label: Annotated[
        str | None, typer.Option(metavar="WORD", callback=as_text, help="A word, as correct.")
    ] = None
    comment: Annotated[str | None, typer.Option(metavar="TEXT", callback=as_text, help="Why.")] = (
        None
    )
    user: Annotated[str, typer.Option(metavar="ID", callback=as_text, help="Who says it.")] = (
        "local"
    )
    json: Json = False

    async def act(self, app: Loom, terminal: Terminal) -> int:
        """Keep the feedback, or list it."""
        run = await find_run(app, self.run, self.app_id)
        if self.score is None and self.label is None:
            return await self._list(app, run, terminal)
        given = await app.feedback.give(
            run,
            self.name,
            score=self.score,
            label=self.label,
            comment=self.comment or "",
            turn=self.turn,
            user_id=self.user,
            app_id=self.app_id,
        )
        if self.json:
            terminal.emit(msgspec.json.encode(given))
        else:
            about = f"turn {given.turn} of run {run}" if given.turn else f"run {run}"
            terminal.show(safe(f"Kept: {given.name} of {about} is {_verdict(given)}."))
        return 0

    async def _list(self, app: Loom, run: str, terminal: Terminal) -> int:
        if self.turn is not None or self.comment is not None:
            raise UsageError("Feedback needs a verdict: `--score NUMBER` or `--label WORD`.")
        found = await app.feedback.list(run, app_id=self.app_id)
        if self.json:
            terminal.emit(msgspec.json.encode(found))
        elif found:
            for part in lay_out(_COLUMNS, found, _cells, terminal.out.width):
                terminal.show(part)
        else:
            terminal.tell(safe(f"Run {run} has no feedback. Give some: `--score` or `--label`."))
        return 0


def _verdict(given: Feedback) -> str:
    return f"{given.score:g}" if given.score is not None else f"{given.label}"


def _cells(given: Feedback) -> tuple[str, ...]:
    turn = "" if given.turn is None else str(given.turn)
    comment = one_line(given.comment)
    return turn, given.name, _verdict(given), given.who, moment(given.at), comment
