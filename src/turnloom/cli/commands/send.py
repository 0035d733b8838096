"""`turnloom send`: send a message to a conversation."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import typer

from turnloom.app import Loom
from turnloom.cli.command import as_text
from turnloom.cli.conversing import ConversingCommand
from turnloom.cli.stored import RunId, find_run, telling_of_waits
from turnloom.cli.terminal import Terminal, safe
from turnloom.log.logic import started_of
from turnloom.log.spec import Event
from turnloom.runtime.messages import MESSAGE
from turnloom.runtime.spec import SentMessage, as_if_busy


@dataclass(frozen=True, kw_only=True)
class SendCommand(ConversingCommand):
    """Send a message to a conversation, at any time, and follow what it says."""

    run: RunId
    text: Annotated[
        str, typer.Argument(metavar="TEXT", callback=as_text, help="The message of the user.")
    ]
    if_busy: Annotated[
        str,
        typer.Option(metavar="WHAT", help="In an open turn: enqueue, reject or interrupt."),
    ] = "enqueue"
    id: Annotated[
        str | None,
        typer.Option(metavar="ID", callback=as_text, help="Its id: the same one is sent once."),
    ] = None
    user: Annotated[
        str | None, typer.Option(metavar="ID", callback=as_text, help="Who sends it.")
    ] = None

    async def act(self, app: Loom, terminal: Terminal) -> int:
        """Send the message; unless another process drives the run, follow it here."""
        run = await find_run(app, self.run, self.app_id)
        user = self.user or started_of(await app.history.events(run, app_id=self.app_id)).user
        handle, policy = app.handle(run, app_id=self.app_id), as_if_busy(self.if_busy)
        holder = await handle.holder()
        async with telling_of_waits(handle, terminal):
            sent = await handle.send(self.text, if_busy=policy, id=self.id, user_id=user)
        if sent.repeated:
            terminal.show(safe(f"Run {sent.run} has message {sent.id} already."))
            return 0
        if sent.run != run:
            terminal.tell(safe(f"Run {run} had ended. Run {sent.run} continues it."))
        if holder is not None:
            terminal.show(safe(f"Message recorded ({sent.verdict}). {holder} drives the run."))
            return 0
        events = await app.history.events(sent.run, app_id=self.app_id)
        following = app.handle(sent.run, app_id=self.app_id)
        return await self.converse(app, following, terminal, user, before=_before(events, sent))


def _before(events: Sequence[Event], sent: SentMessage) -> Sequence[Event]:
    """The events of a run up to a message."""
    mark = f"{MESSAGE}{sent.id}"
    seqs = [event.seq for event in events if event.id in (mark, f"{mark}/answer", f"{mark}/text")]
    return events[: max(seqs, default=len(events))]
