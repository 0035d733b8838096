"""Diagnostics of workflow folders, with paths that work from here."""

import os
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from dataclasses import replace

from rich.text import Text

from turnloom.cli.terminal import joined
from turnloom.errors import DefinitionError, Diagnostic

_STYLES = {"error": "bold red", "warning": "yellow"}


def relocate(path: str, problems: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Problems of the folder at `path`, with its files as they are reached from here."""
    parent = os.path.dirname(os.path.abspath(path))
    found: list[Diagnostic] = []
    for problem in problems:
        file = os.path.join(parent, problem.file)
        found.append(replace(problem, file=file if os.path.isabs(path) else os.path.relpath(file)))
    return found


@contextmanager
def located(path: str) -> Generator[None, None, None]:
    """Work on the folder at `path`, whose problems are told with files as reached from here."""
    try:
        yield
    except DefinitionError as error:
        raise DefinitionError(path, relocate(path, error.diagnostics)) from error


def line(problem: Diagnostic) -> Text:
    """A problem on one line: where, which, what, and what to do."""
    style = _STYLES.get(problem.severity, "")
    remedy = f" {problem.remedy}" if problem.remedy else ""
    return joined(
        (f"{problem.file}:{problem.line}:", "bold"),
        " ",
        (problem.code, style),
        f" {problem.message}",
        (remedy, "dim"),
    )
