"""`turnloom index`: indexes for database variables in large collections."""

import asyncio
from dataclasses import dataclass
from typing import Annotated

import typer

from turnloom.app import Loom
from turnloom.cli.command import Command, as_text
from turnloom.cli.problems import located
from turnloom.cli.terminal import Terminal, joined, safe
from turnloom.variables.service import LookupIndex as Indexed


@dataclass(frozen=True, kw_only=True)
class IndexCommand(Command):
    """Make the indexes that database variables are looked up by; those that exist stay."""

    paths: Annotated[list[str], typer.Argument(metavar="PATH...", help="Workflow folders.")]
    documents: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            callback=as_text,
            help="Where documents are, instead of TURNLOOM_DOCUMENTS or sqlite:.turnloom/documents",
        ),
    ] = None

    def carry_out(self, terminal: Terminal) -> int:
        """Create every index, a line each; 1 if one cannot be created because its collection is
        missing."""
        return asyncio.run(self._make(terminal))

    async def _make(self, terminal: Terminal) -> int:
        shown: set[Indexed] = set()
        async with Loom(store="memory", documents=self.documents) as app:
            for path in self.paths:
                with located(path):
                    async for index in app.index(path):
                        if index not in shown:
                            _tell(index, terminal)
                            shown.add(index)
        if not shown:
            terminal.tell(safe("No database variables, so nothing to index."))
        if all(index.made for index in shown):
            return 0
        terminal.fail("A collection that is not there cannot be indexed. Run this once it is.")
        return 1


def _tell(index: Indexed, terminal: Terminal) -> None:
    """Print an index, and whether it exists."""
    database = "default database" if index.database is None else f"database {index.database}"
    became = ("indexed", "green") if index.made else ("no such collection", "bold red")
    place = f"{database}, collection {index.collection}, field {index.field}: "
    terminal.show(joined(place, became))
