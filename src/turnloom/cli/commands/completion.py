"""`turnloom completion`: shell completion."""

from dataclasses import dataclass
from typing import Annotated

import typer

from turnloom.cli.command import Command
from turnloom.cli.shells import Shell, script
from turnloom.cli.terminal import Terminal, safe


@dataclass(frozen=True, kw_only=True)
class Completion(Command):
    """Print the script that makes a shell complete commands and options of `turnloom`."""

    shell: Annotated[
        Shell, typer.Argument(metavar="SHELL", help="Which shell: `bash`, `zsh` or `fish`.")
    ]

    def carry_out(self, terminal: Terminal) -> int:
        """Print the script."""
        terminal.write(safe(f"{script(self.shell)}\n"))
        return 0
