"""`turnloom worker`: drive the runs that programs hand over."""

import asyncio
import logging
import os
import sys
from dataclasses import dataclass
from importlib import import_module
from typing import Annotated, Any

import typer

from turnloom.app import Loom
from turnloom.cli.command import Command, EngineName, ModelName, as_text
from turnloom.cli.stored import StoreFile
from turnloom.cli.tending import tended
from turnloom.cli.terminal import Terminal, safe
from turnloom.errors import UsageError

# Runs that a worker drives at once, unless it is told.
SLOTS = 100

_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


@dataclass(frozen=True, kw_only=True)
class WorkerCommand(Command):
    """Drive runs that programs hand over, together with other workers, until stopped."""

    store: StoreFile = None
    slots: Annotated[int, typer.Option(min=1, help="How many runs at once.")] = SLOTS
    workflows: Annotated[
        str | None,
        typer.Option(
            metavar="DIR",
            callback=as_text,
            help="Where the code of runs is: workflow folders and FILE.py, by their names.",
        ),
    ] = None
    app: Annotated[
        str | None,
        typer.Option(
            metavar="MODULE:APP",
            callback=as_text,
            help="An app with flows and boards, which is served instead of one of the settings.",
        ),
    ] = None
    grace: Annotated[
        float,
        typer.Option(
            metavar="SECONDS", min=0, help="After SIGTERM: how long drives may take to end or park."
        ),
    ] = 30.0
    model: ModelName = None
    engine: EngineName = None

    def carry_out(self, terminal: Terminal) -> int:
        """Drive runs until a signal comes; then end in order."""
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter(_FORMAT))
        logging.getLogger("turnloom").addHandler(handler)
        try:
            asyncio.run(self._work(terminal))
        except KeyboardInterrupt:
            terminal.tell(safe("The worker has ended.", "dim"))
        return 0

    async def _work(self, terminal: Terminal) -> None:
        async with self._open() as app:
            await app.runs(1)  # a store that cannot be used is refused before anything is said
            notice = f"Worker {os.getpid()} drives up to {self.slots} runs at once."
            terminal.tell(safe(notice, "dim"))
            async with tended(app):
                await app.serving.work(self.slots, workflows=self.workflows, grace=self.grace)

    def _open(self) -> Loom:
        """The app that is named, or one with the settings.

        Raises:
            UsageError: there is no such app.
        """
        if self.app is None:
            return Loom(store=self.store, model=self.model, engine=self.engine)
        given = {"--store": self.store, "--model": self.model, "--engine": self.engine}
        for option, value in given.items():
            if value is not None:
                raise UsageError(
                    f"{option} has no effect with --app: the app has its own settings."
                )
        return app_at(self.app)


def app_at(name: str) -> Loom:
    """The app that a module defines, as in `shop.flows:app`.

    Raises:
        UsageError: there is none.
    """
    module, colon, attribute = name.partition(":")
    if not (module and colon and attribute):
        raise UsageError(f"--app is MODULE:APP, as in shop.flows:app, got {name!r}.")
    sys.path.insert(0, os.getcwd())
    try:
        found: Any = import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise
        raise UsageError(
            f"There is no module {module!r} here. Start the worker in the folder that holds it."
        ) from error
    for part in attribute.split("."):
        found = getattr(found, part, None)
    if not isinstance(found, Loom):
        raise UsageError(f"{attribute!r} of module {module!r} is no `Loom`.")
    return found
