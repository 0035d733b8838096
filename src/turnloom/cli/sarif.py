"""Diagnostics as SARIF 2.1.0, which code hosts and editors read."""

import os
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from turnloom.errors import Diagnostic

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
