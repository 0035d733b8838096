"""`turnloom runs`: the runs of a store."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import msgspec
import typer
from rich.text import Text

from turnloom.app import Loom
from turnloom.app.choosing import LISTED, RunChoice
from turnloom.cli.command import as_text
from turnloom.cli.questions import gist
from turnloom.cli.stored import Json, StoredRunsCommand, find_run, no_runs
from turnloom.cli.tables import lay_out
from turnloom.cli.terminal import Terminal, joined, safe
from turnloom.cli.times import instant_or_age
from turnloom.explain.spec.text import moment
from turnloom.runtime.logic import ENDED
from turnloom.runtime.spec import RunSummary

_COLUMNS = ("run", "workflow", "status", "started", "last event", "events", "user", "app")
# What people copy from the table or look for in it.
_WHOLE = ("run", "status")
_STYLES = {
    "finished": "green",
    "failed": "red",
    "cancelled": "red",
    "waiting": "yellow",
    "collecting": "cyan",
    "broken": "red",
    "stranded": "red",
    "limited": "yellow",
}


@dataclass(frozen=True, kw_only=True)
class RunsCommand(StoredRunsCommand):
    """List the runs of a tenant, the one begun last coming first."""

    json: Json = False
    limit: Annotated[int, typer.Option(min=1, help="How many at most.")] = 20
    before: Annotated[
        str | None,
        typer.Option(metavar="RUN", help="Those that began before this run: the next page."),
    ] = None
    unfinished: Annotated[bool, typer.Option("--unfinished", help="Those without an end.")] = False
    status: Annotated[
        list[str] | None,
        typer.Option(metavar="STATUS", help=f"{', '.join(LISTED)}; may be repeated."),
    ] = None
    workflow: Annotated[
        str | None, typer.Option(metavar="NAME", callback=as_text, help="Runs of this workflow.")
    ] = None
    user: Annotated[
        str | None, typer.Option(metavar="ID", callback=as_text, help="Runs of this user.")
    ] = None
    feedback: Annotated[
        str | None,
        typer.Option(
            metavar="FILTER",
            callback=as_text,
            help="With this feedback, as helpful, 'helpful<0.5' or verdict=wrong.",
        ),
    ] = None
    find: Annotated[
        str | None,
        typer.Option(
            metavar="WORDS",
            callback=as_text,
            help="With all these words in id, workflow, user, status or reason.",
        ),
    ] = None
    since: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Begun since then: ISO 8601, or an age, as 1h."),
    ] = None
    until: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Begun until then: ISO 8601, or an age."),
    ] = None

    async def act(self, app: Loom, terminal: Terminal) -> int:
        """Print the list."""
        before = self.before and await find_run(app, self.before, self.app_id)
        which = self._which()
        found = await app.runs(
            self.limit + 1, before=before, unfinished=self.unfinished, app_id=self.app_id, **which
        )
        listed, more = found[: self.limit], len(found) > self.limit
        if self.json:
            terminal.emit(msgspec.json.encode(listed))
        elif listed:
            for part in lay_out(_COLUMNS, listed, _cells, terminal.out.width, whole=_WHOLE):
                terminal.show(part)
            await self._tell_waiting(app, listed, terminal)
            for each in listed:
                if each.reason and each.status not in ENDED:
                    said = f" is {each.status}: {each.reason}"
                    terminal.show(joined((each.run, "bold"), said))
            if more:
                more_of_them = "There are more; `--limit N` shows N, `--before RUN` the next ones."
                terminal.tell(safe(more_of_them, "dim"))
        elif which or before or self.unfinished:
            terminal.tell(safe(f"App {self.app_id!r} has no such runs in this store."))
        else:
            terminal.tell(safe(no_runs(self.app_id)))
        return 0

    def _which(self) -> RunChoice:
        """The filter of the options."""
        which = RunChoice()
        if self.status:
            which["status"] = self.status
        if self.workflow is not None:
            which["workflow"] = self.workflow
        if self.user is not None:
            which["user"] = self.user
        if self.feedback is not None:
            which["feedback"] = self.feedback
        if self.find is not None:
            which["find"] = self.find
        if since := instant_or_age(self.since, "--since"):
            which["since"] = since
        if until := instant_or_age(self.until, "--until"):
            which["until"] = until
        return which

    async def _tell_waiting(
        self, app: Loom, listed: Sequence[RunSummary], terminal: Terminal
    ) -> None:
        """List the open questions of waiting runs."""
        for each in listed:
            if each.status != "waiting":
                continue
            for question in await app.handle(each.run, app_id=self.app_id).questions():
                if asked := gist(question):
                    terminal.show(joined((each.run, "bold"), f" waits: {asked}"))


def _cells(each: RunSummary) -> tuple[str | Text, ...]:
    return (
        safe(each.run, "bold"),
        each.workflow,
        safe(each.standing, _STYLES.get(each.status, "")),
        moment(each.started),
        moment(each.latest),
        str(each.events),
        each.user,
        each.tenant,
    )
