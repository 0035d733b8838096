"""Commands that work on the runs of a store."""

import asyncio
from abc import abstractmethod
from dataclasses import dataclass
from typing import Annotated

import typer

from turnloom.app import Loom
from turnloom.cli import invocation
from turnloom.cli.command import Command
from turnloom.cli.masking import masked
from turnloom.cli.terminal import Terminal
from turnloom.errors import UnknownRun, UsageError
from turnloom.wiring import settings

# The most runs that are named when a prefix fits several.
NAMED = 5

RunId = Annotated[
    str, typer.Argument(metavar="RUN", help="A run: its id, the beginning of it, or `last`.")
]
StoreFile = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="Where runs are kept, instead of TURNLOOM_STORE or .turnloom/turnloom.db.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]


@dataclass(frozen=True, kw_only=True)
class StoreCommand(Command):
    """A command that opens a store."""

    store: StoreFile = None

    def carry_out(self, terminal: Terminal) -> int:
        """Do it with the store open, and give the exit code."""
        return asyncio.run(self._with_app(terminal))

    async def _with_app(self, terminal: Terminal) -> int:
        async with self.open() as app:
            return await self.act(app, terminal)

    def open(self) -> Loom:
        """The app that it works with."""
        return Loom(store=self.store)

    @abstractmethod
    async def act(self, app: Loom, terminal: Terminal) -> int:
        """Do it, and give the exit code."""

    @property
    def is_kept(self) -> bool:
        """Whether another process finds what this one leaves in the store."""
        return settings({"store": self.store}).store != "memory"

    def again(self, *words: str) -> str:
        """A command line that works on the same store from the same folder; a password in it is
        left to be filled in."""
        return invocation.again(*words, *(("--store", masked(self.store)) if self.store else ()))


async def find_run(app: Loom, word: str) -> str:
    """The id that a word stands for: an id, the beginning of one, or `last`.

    Raises:
        UsageError: it stands for none, or for several.
    """
    if word == "last":
        for latest in await app.runs(1):
            return latest.run
        raise UsageError("There are no runs in this store. `turnloom run PATH` starts one.")
    known = [summary.run for summary in await app.runs()]
    found = [run for run in known if word and run.startswith(word)]
    if word in found or len(found) == 1:
        return word if word in found else found[0]
    if not found:
        raise UnknownRun(word)
    some = ", ".join(found[:NAMED]) + (", …" if len(found) > NAMED else "")
    raise UsageError(f"{len(found)} runs begin with {word!r}: {some}. Give more of the id.")
