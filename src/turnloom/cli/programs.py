"""Flows in files and folders, by the names that the command line uses."""

from os.path import basename, exists
from pathlib import Path
from typing import Any

import msgspec
from pydantic import BaseModel, ValidationError

from turnloom.cli.problems import relocate
from turnloom.errors import DefinitionError, Diagnostic, UsageError
from turnloom.flow.logic.flows import Flow
from turnloom.kernel.models import Report
from turnloom.kernel.values import as_object, nearest
from turnloom.wiring import Folders, examine_in_process, read_part, workflows_below
from turnloom.wiring.flows import named_flows
from turnloom.wiring.folders import Loading
from turnloom.wiring.programs import may_exit

_CODE = ".py"

# The code of a code file that does not load.
_UNLOADED = "W042"

# Seconds that code which may end its process has to load.
PATIENCE = 60.0


def is_program(path: str) -> bool:
    """Whether a path names a file of code, or a flow in one."""
    return path.endswith(_CODE) or f"{_CODE}:" in path


def file_of(path: str) -> str:
    """The file of a path, without the flow in it."""
    return path if path.endswith(_CODE) else path.rpartition(f"{_CODE}:")[0] + _CODE


def flow_at(path: str) -> Flow[Any]:
    """The flow that a path names.

    Raises:
        UsageError: there is no such file or flow, or it is not said which of several.
        DefinitionError: the file does not run, or a flow in it does not pass its check.
    """
    file = file_of(path)
    name = path[len(file) + 1 :]
    if not Path(file).is_file():
        raise UsageError(f"File {file!r} does not exist.")
    found, variables = named_flows(file)
    if not found:
        raise UsageError(f"{file!r} builds no flow. Build one: `Flow(name, State).start_with(…)`.")
    if name in found or name in variables:
        return found.get(name) or variables[name]
    if name:
        near = nearest(name, [*found, *variables])
        remedy = f"Did you mean {near!r}?" if near else f"It builds: {', '.join(found)}."
        raise UsageError(f"{file!r} builds no flow {name!r}. {remedy}")
    if len(found) > 1:
        raise UsageError(
            f"{file!r} builds several flows: {', '.join(found)}. Name one: {file}:{min(found)}"
        )
    return next(iter(found.values()))


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
    model: type[BaseModel] = flow.state
    try:
        if given is None:
            return model()
        text = _text(given)
        state = model.model_validate_json(text)
        _refuse_unknown(model, text)
        return state
    except ValidationError as error:
        remedy = "Give a state with --input." if given is None else "Correct --input."
        faults = "; ".join(map(_fault, error.errors()))
        raise UsageError(f"This is no {model.__name__}: {faults}. {remedy}") from error


def _refuse_unknown(model: type[BaseModel], text: str) -> None:
    """Refuse keys that are not fields of the state, unless its model handles them.

    Raises:
        UsageError: there are such keys.
    """
    if model.model_config.get("extra") is not None:
        return
    known = {field.alias or name for name, field in model.model_fields.items()}
    known |= model.model_fields.keys()
    for key in as_object(msgspec.json.decode(text)) or {}:
        if key not in known:
            near = nearest(key, sorted(known))
            remedy = f"Did you mean {near!r}?" if near else f"It has: {', '.join(sorted(known))}."
            raise UsageError(f"A {model.__name__} has no field {key!r}. {remedy}")


def _fault(detail: Any) -> str:
    where = ".".join(map(str, detail["loc"]))
    return f"{where}: {detail['msg']}" if where else str(detail["msg"])


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
