"""`weft check`: every problem of every workflow, at once."""

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Annotated

import msgspec
import typer

from weft.cli.command import Command
from weft.cli.problems import line, relocate
from weft.cli.terminal import Terminal
from weft.errors import Diagnostic
from weft.wiring import Folders


class Format(StrEnum):
    """How problems are printed."""

    text = "text"
    json = "json"


@dataclass(frozen=True, kw_only=True)
class Check(Command):
    """Check workflow folders: silent when all is right, else every problem with its place."""

    paths: Annotated[list[str], typer.Argument(metavar="PATH...", help="Workflow folders.")]
    format: Annotated[Format, typer.Option(help="For people, or a JSON array.")] = Format.text

    def carry_out(self, terminal: Terminal) -> int:
        """Check every folder; 2 if one has an error."""
        problems = [problem for path in self.paths for problem in _problems(path)]
        if self.format is Format.json:
            terminal.emit(msgspec.json.encode([asdict(problem) for problem in problems]))
        else:
            for problem in problems:
                terminal.show(line(problem))
        return 2 if any(problem.severity == "error" for problem in problems) else 0


def _problems(path: str) -> list[Diagnostic]:
    return relocate(path, sorted(Folders().examine(path)[1]))
