"""`turnloom serve`: the API, live streams and the web UI over HTTP."""

import asyncio
import logging
import os
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from turnloom.app import Loom
from turnloom.cli.apps import opened_app
from turnloom.cli.command import Command, EngineName, ModelName, as_text
from turnloom.cli.invocation import again
from turnloom.cli.stored import StoreFile
from turnloom.cli.tending import tended
from turnloom.cli.terminal import Terminal, joined, safe
from turnloom.errors import UsageError
from turnloom.log.spec import LOCAL
from turnloom.server import asgi
from turnloom.server.gate import is_loopback
from turnloom.server.serving import Address, serve
from turnloom.server.settings import server_settings

# Where workflows are looked for if no folder is named.
WORKFLOWS = "workflows"

log = logging.getLogger("turnloom.server")


@dataclass(frozen=True, kw_only=True)
class ServeCommand(Command):
    """Serve workflows over HTTP: an API with live streams, and the web UI. Continues the unfinished
    runs of these workflows."""

    host: Annotated[
        str, typer.Option(metavar="HOST", callback=as_text, help="The address to listen at.")
    ] = "127.0.0.1"
    port: Annotated[
        int, typer.Option(metavar="PORT", min=0, max=65_535, help="The port; 0 takes a free one.")
    ] = 8321
    workflows: Annotated[
        str | None,
        typer.Option(
            metavar="DIR",
            callback=as_text,
            help="A workflow folder, or a folder of such; by default `workflows`, if it exists.",
        ),
    ] = None
    app: Annotated[
        str | None,
        typer.Option(
            metavar="MODULE:NAME",
            callback=as_text,
            help="A `Loom` with flows and boards, or a function that is given one.",
        ),
    ] = None
    grace: Annotated[
        float,
        typer.Option(
            metavar="SECONDS",
            min=0,
            max=3_600,
            help="How long requests and drives may take to end.",
        ),
    ] = 10.0
    model: ModelName = None
    engine: EngineName = None
    store: StoreFile = None

    def carry_out(self, terminal: Terminal) -> int:
        """Serve until the process is told to stop."""
        return asyncio.run(self._serve(terminal))

    async def _serve(self, terminal: Terminal) -> int:
        chosen = server_settings()
        async with AsyncExitStack() as stack:
            opening = opened_app(self.app, store=self.store, model=self.model, engine=self.engine)
            app = await stack.enter_async_context(opening)
            names, is_open = self._add(app), not await app.auth.is_set_up()
            if is_open and not is_loopback(self.host):
                raise UsageError(
                    f"Without keys, the server listens on this machine only, not at {self.host!r}. "
                    "Make a key first: `turnloom keys create`."
                )
            is_audited = app.serving.has_audit
            listener = Address(self.host, self.port).bind()
            stack.callback(listener.close)
            stack.push_async_callback(_finish, asyncio.ensure_future(app.serving.pick_up()))
            await stack.enter_async_context(tended(app))
            api = asgi(app, limits=chosen.limits, hosts=chosen.hosts, origins=chosen.origins)
            host = f"[{self.host}]" if ":" in self.host else self.host
            address = f"http://{host}:{listener.getsockname()[1]}"

            def ready() -> None:
                _greet(terminal, address, names, is_open=is_open, is_audited=is_audited)

            await serve(api, listener, grace=self.grace, ready=ready)
            left = await app.serving.drain(self.grace)
        after = f" {left} runs were interrupted, and" if left else " Open runs"
        terminal.tell(
            safe(f"Stopped.{after} continue with the next `turnloom serve`, or with workers.")
        )
        return 0

    def _add(self, app: Loom) -> list[str]:
        """Serve the workflows of a folder; returns the names of all workflows."""
        if self.workflows is not None or os.path.isdir(WORKFLOWS):
            app.workflows.add(self.workflows or WORKFLOWS)
        return [each.name for each in app.workflows.served(LOCAL)]


def _greet(
    terminal: Terminal, address: str, names: Sequence[str], *, is_open: bool, is_audited: bool
) -> None:
    terminal.show(joined("Turnloom serves at ", (address, "bold")))
    terminal.show(safe(f"  API: {address}/api/v1, described at {address}/docs"))
    if names:
        terminal.show(safe(f"  Workflows: {', '.join(names)}"))
    else:
        terminal.show(safe("  No workflows yet. Put folders into `workflows`, and start again."))
    if is_open:
        terminal.show(safe("  Without keys, it answers this machine only. Make a key:"))
        terminal.show(safe(f"    {again('keys', 'create', '--role', 'developer')}"))
    if not is_audited:
        terminal.show(safe("  No audit trail is kept: the store lacks the port `audit`. Add it."))
    terminal.out.file.flush()


async def _finish(task: "asyncio.Task[Any]") -> None:
    """Stop a task; if it failed, that is logged."""
    task.cancel()
    await asyncio.wait({task})
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("a task of the server failed: %s", error)
