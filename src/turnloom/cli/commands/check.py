"""`turnloom check`: all problems of all workflows at once."""

import os
from dataclasses import asdict, dataclass
from enum import StrEnum
from functools import partial
from importlib import metadata
from typing import Annotated

import msgspec
import typer

from turnloom.cli.command import Command, EngineName, ModelName
from turnloom.cli.problems import line, relocate, sarif
from turnloom.cli.terminal import Terminal
from turnloom.errors import DefinitionError, Diagnostic, UsageError
from turnloom.wiring import (
    Folders,
    ModelEngines,
    examine_code,
    examine_in_process,
    is_code,
    settings,
)
from turnloom.wiring.flow_files import file_of, flow_at, is_program
from turnloom.wiring.flows import examine_flow
from turnloom.wiring.folders import Loading


class Format(StrEnum):
    """How problems are printed."""

    text = "text"
    json = "json"
    sarif = "sarif"


class Severity(StrEnum):
    """The least severity of a problem that makes the check fail."""

    error = "error"
    warning = "warning"


@dataclass(frozen=True, kw_only=True)
class CheckCommand(Command):
    """Check workflow folders, and the flows and chats of AG2 in files of code: silent when all is
    right, else every problem with its place."""

    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="PATH...",
            help="Workflow folders, `.py` files with flows or chats of AG2, or `FILE.py:NAME`.",
        ),
    ]
    production: Annotated[
        bool, typer.Option("--production", help="Also say what will not happen in production.")
    ] = False
    model: ModelName = None
    engine: EngineName = None
    format: Annotated[Format, typer.Option(help="For people, a JSON array, or SARIF 2.1.0.")] = (
        Format.text
    )
    fail_on: Annotated[
        Severity, typer.Option("--fail-on", help="Exit with 2 on errors only, or on warnings too.")
    ] = Severity.error
    json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False
    timeout: Annotated[
        float,
        typer.Option(
            metavar="SECONDS", min=0.1, max=86_400, help="How long a code file may take to load."
        ),
    ] = 30

    def carry_out(self, terminal: Terminal) -> int:
        """Check every folder and file; 2 if one has an error, or a warning if that is wanted."""
        if self.json and self.format is Format.sarif:
            raise UsageError("--json and --format sarif exclude each other. Choose one.")
        chosen = settings({"model": self.model, "engine": self.engine})
        models = ModelEngines(chosen.model, chosen.engine)
        examine = partial(self._examine, models)
        problems = [
            problem
            for path, found in examine_in_process(self.paths, examine, self.timeout)
            for problem in relocate(file_of(path) if is_program(path) else path, found)
        ]
        match Format.json if self.json else self.format:
            case Format.json:
                terminal.emit(msgspec.json.encode([asdict(problem) for problem in problems]))
            case Format.sarif:
                terminal.emit(msgspec.json.encode(sarif(problems, metadata.version("turnloom"))))
            case Format.text:
                for problem in problems:
                    terminal.show(line(problem))
        failing = ("error",) if self.fail_on is Severity.error else ("error", "warning")
        return 2 if any(problem.severity in failing for problem in problems) else 0

    def _examine(self, models: ModelEngines, path: str, loading: Loading) -> list[Diagnostic]:
        """The problems of a folder or a file; runs its code."""
        if not is_program(path):
            folders = Folders(production=self.production, models=models)
            return sorted(folders.examine_here(path, loading))
        try:
            loading(os.path.basename(file_of(path)))
            if is_code(path):
                return examine_code(path, models)
            return sorted(examine_flow(flow_at(path), models))
        except DefinitionError as error:
            return [*error.diagnostics]
