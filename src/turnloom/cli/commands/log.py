"""`turnloom log`: the events of a run, as they are stored."""

from collections.abc import AsyncIterator, Collection
from contextlib import aclosing
from dataclasses import dataclass
from typing import Annotated

import msgspec
import typer

from turnloom.app import Loom
from turnloom.cli.stored import Json, RunId, StoredRunsCommand, find_run
from turnloom.cli.terminal import Terminal, joined
from turnloom.errors import UsageError
from turnloom.explain.spec.text import moment
from turnloom.kernel.values import nearest
from turnloom.log.spec import Event
from turnloom.runtime.logic import FACTS

# The width of the column of kinds; longer ones shift the rest of their line.
KIND = 18


@dataclass(frozen=True, kw_only=True)
class LogCommand(StoredRunsCommand):
    """Print the log of a run: its events with all that they hold, the first one first."""

    run: RunId
    follow: Annotated[
        bool, typer.Option("--follow", help="Also print what is still to happen, up to its end.")
    ] = False
    kind: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KIND",
            help="Only events of this kind, as in `tool.called`, or of all that begin so, as in "
            "`tool`; may be repeated.",
        ),
    ] = None
    json: Json = False

    async def act(self, app: Loom, terminal: Terminal) -> int:
        """Print the events, a line each."""
        kinds = _kinds(self.kind or ())
        run = await find_run(app, self.run, self.app_id)
        async for event in self._events(app, run):
            if event.kind in kinds:
                self._print(event, terminal)
        return 0

    async def _events(self, app: Loom, run: str) -> AsyncIterator[Event]:
        if not self.follow:
            for event in await app.history.events(run, app_id=self.app_id):
                yield event
            return
        async with aclosing(app.handle(run, app_id=self.app_id).events()) as events:
            async for event in events:
                yield event

    def _print(self, event: Event, terminal: Terminal) -> None:
        if self.json:
            terminal.emit(msgspec.json.encode(event))
            return
        data = msgspec.json.encode(event.data).decode()
        place = f"{event.seq:>5}  {moment(event.at)}  "
        kind = f"{event.kind:<{KIND}}  "
        terminal.show(joined((place, "dim"), (kind, "bold"), f"{event.actor}  ", (data, "")))


def _kinds(given: Collection[str]) -> Collection[str]:
    """The kinds that are asked for: all, if none is named.

    Raises:
        UsageError: there is none of that name.
    """
    known = sorted(fact.kind for fact in FACTS)
    found = set[str]()
    for each in given:
        meant = [kind for kind in known if kind == each or kind.startswith(f"{each}.")]
        if not meant:
            near = nearest(each, [*known, *sorted({kind.partition(".")[0] for kind in known})])
            remedy = f"Did you mean {near!r}?" if near else f"Known: {', '.join(known)}."
            raise UsageError(f"Unknown kind of event {each!r}. {remedy}")
        found.update(meant)
    return found if given else known
