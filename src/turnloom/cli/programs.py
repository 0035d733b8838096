"""Flows in files and folders, by the names that the command line uses."""

from os.path import basename, exists
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from turnloom.cli.problems import relocate
from turnloom.errors import DefinitionError, Diagnostic, UsageError
from turnloom.flow.logic.flows import Flow
from turnloom.kernel.models import Report
from turnloom.kernel.values import as_object
from turnloom.wiring import Folders, examine_in_process, read_part, workflows_below
from turnloom.wiring.flow_files import file_of, flow_at, is_program, state_from
from turnloom.wiring.folders import Loading
from turnloom.wiring.programs import may_exit

# The code of a code file that does not load.
_UNLOADED = "W042"

# Seconds that code which may end its process has to load.
PATIENCE = 60.0


def refuse_exits(path: str) -> None:
    """Refuse a folder or file whose code ends the process that loads it, since no error could be
    shown then. Code is first loaded in another process only if its text suggests an exit, since it
    runs twice then.

    Raises:
        DefinitionError: its code ends the process.
    """
    file = file_of(path) if is_program(path) else path
    if not exists(file) or not may_exit(file):
        return
    for _, found in examine_in_process([path], _examine, PATIENCE):
        if ending := [each for each in found if each.code == _UNLOADED]:
            raise DefinitionError(path, relocate(file, ending))


def _examine(path: str, loading: Loading) -> list[Diagnostic]:
    """The problems of the code at a path; runs the code."""
    if not is_program(path):
        return Folders().examine(path, loading)[1]
    try:
        loading(basename(file_of(path)))
        flow_at(path)
    except DefinitionError as error:
        return [*error.diagnostics]
    return []


def state_of(flow: Flow[Any], given: str | None) -> BaseModel:
    """The initial state of a flow: JSON, or the content of the file after an `@`.

    Raises:
        UsageError: it is not a state of the flow, or the file cannot be read.
    """
    return state_from(flow, None if given is None else _text(given), "--input")


def _text(given: str) -> str:
    if not given.startswith("@"):
        return given
    try:
        return Path(given[1:]).read_text(encoding="utf-8")
    except (OSError, UnicodeError) as error:
        raise UsageError(f"The file of --input cannot be read: {error}.") from error


def entrance(path: str) -> str:
    """The workflow folder at a path, or the one below it that is the entry point.

    Raises:
        UsageError: below it are workflow folders, and not exactly one says that it is.
    """
    below = workflows_below(path)
    if not below:
        return path
    entrances = [each for each in below if _is_entry(each)]
    if len(entrances) == 1:
        return entrances[0]
    if entrances:
        found = f"{len(entrances)} of them are entry points: {', '.join(entrances)}"
    else:
        found = f"none of them says `entry_point: true`: {', '.join(below)}"
    raise UsageError(f"{path!r} holds workflow folders, and {found}. Name the one to run.")


def _is_entry(folder: str) -> bool:
    """Whether a workflow's orchestrator declares it as the entry point."""
    try:
        document, _ = read_part(folder, "orchestrator")
    except UsageError:  # it has none, or two
        return False
    if document is None:
        return False
    declared = as_object(Report(folder).part(document, "orchestrator").value) or {}
    return declared.get("entry_point") is True
