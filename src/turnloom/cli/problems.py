"""Diagnostics, for people and as SARIF."""

import os
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from urllib.parse import quote

from rich.text import Text

from turnloom.cli.terminal import joined
from turnloom.errors import DefinitionError, Diagnostic

_STYLES = {"error": "bold red", "warning": "yellow"}


def relocate(path: str, problems: Iterable[Diagnostic]) -> list[Diagnostic]:
    """The problems of the folder at `path`, with file names relative to here."""
    parent = os.path.dirname(os.path.abspath(path))
    found: list[Diagnostic] = []
    for problem in problems:
        file = os.path.join(parent, problem.file)
        found.append(replace(problem, file=file if os.path.isabs(path) else os.path.relpath(file)))
    return found


@contextmanager
def located(path: str) -> Generator[None, None, None]:
    """Run the block on the folder at `path`, with file names of its problems relative to here."""
    try:
        yield
    except DefinitionError as error:
        raise DefinitionError(path, relocate(path, error.diagnostics)) from error


def line(problem: Diagnostic) -> Text:
    """A problem on one line: place, code, message, remedy."""
    style = _STYLES.get(problem.severity, "")
    remedy = f" {problem.remedy}" if problem.remedy else ""
    return joined(
        (f"{problem.file}:{problem.line}:", "bold"),
        " ",
        (problem.code, style),
        f" {problem.message}",
        (remedy, "dim"),
    )


_SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)


# SARIF's words for severities, where they differ.
_LEVELS = {"info": "note"}


def sarif(problems: Sequence[Diagnostic], version: str) -> dict[str, Any]:
    """A SARIF run of this version of Turnloom, with a result per problem."""
    levels = {problem.code: _level(problem) for problem in problems}
    codes = sorted(levels)
    rules = [{"id": code, "defaultConfiguration": {"level": levels[code]}} for code in codes]
    driver = {"name": "Turnloom", "version": version, "rules": rules}
    results = [_result(problem, codes.index(problem.code)) for problem in problems]
    run = {"tool": {"driver": driver}, "results": results}
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}


def _result(problem: Diagnostic, index: int) -> dict[str, Any]:
    place = {
        "artifactLocation": {"uri": _uri(problem.file)},
        "region": {"startLine": problem.line},
    }
    return {
        "ruleId": problem.code,
        "ruleIndex": index,
        "level": _level(problem),
        "message": {"text": f"{problem.message} {problem.remedy}".strip()},
        "locations": [{"physicalLocation": place}],
    }


def _level(problem: Diagnostic) -> str:
    return _LEVELS.get(problem.severity, problem.severity)


def _uri(file: str) -> str:
    """The path of a file relative to the current folder."""
    return quote(os.path.relpath(file).replace(os.sep, "/"))
