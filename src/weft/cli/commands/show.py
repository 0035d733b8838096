"""`weft show`: what is allowed in a file, and which settings are in force."""

import json
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

import typer

from weft.cli.command import Command
from weft.cli.masking import masked
from weft.cli.stored import StoreFile
from weft.cli.terminal import Terminal, joined
from weft.conversation.logic.schemas import FILES, schema_of, written
from weft.errors import UsageError
from weft.wiring import in_force


class Subject(StrEnum):
    """What can be shown."""

    schema = "schema"
    config = "config"


@dataclass(frozen=True, kw_only=True)
class Show(Command):
    """Show the JSON Schema of a workflow's file, or the settings and where each came from."""

    subject: Annotated[Subject, typer.Argument(metavar="WHAT", help="`schema` or `config`.")]
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help=f"Schema of: {', '.join(FILES)}.")
    ] = None
    store: StoreFile = None

    def carry_out(self, terminal: Terminal) -> int:
        """Print what was asked for."""
        if self.subject is Subject.config:
            self._show_config(terminal)
        else:
            self._show_schema(terminal)
        return 0

    def _show_schema(self, terminal: Terminal) -> None:
        if self.name is None:
            names = ", ".join(FILES)
            raise UsageError(f"Say of which file: `weft show schema NAME`. Names: {names}.")
        if self.store is not None:
            raise UsageError("A schema has no store. Leave `--store` out.")
        terminal.emit(written(schema_of(self.name)))

    def _show_config(self, terminal: Terminal) -> None:
        if self.name is not None:
            raise UsageError(f"`weft show config` takes no name. Leave {self.name!r} out.")
        for name, chosen in in_force({"store": self.store}).items():
            value = json.dumps(masked(chosen.value), ensure_ascii=False)
            terminal.show(joined((name, "bold"), f" = {value}", (f"  # {chosen.origin}", "dim")))
