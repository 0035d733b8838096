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


_SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)


# What SARIF calls a severity, where it has another word.
_LEVELS = {"info": "note"}


def sarif(problems: Sequence[Diagnostic], version: str) -> dict[str, Any]:
    """One run of this version of Turnloom, with a result per problem."""
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
    """A file as it is reached from the current folder."""
    return quote(os.path.relpath(file).replace(os.sep, "/"))
