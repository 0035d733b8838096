"""Flows in code files, by the names that people use, and the states that they begin with."""

from pathlib import Path
from typing import Any

import msgspec
from pydantic import BaseModel, ValidationError

from turnloom.errors import UsageError
from turnloom.flow.logic.flows import Flow
from turnloom.kernel.values import Json, as_object, nearest
from turnloom.wiring.flows import named_flows

_CODE = ".py"


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


def state_from(flow: Flow[Any], text: str | None, option: str) -> BaseModel:
    """The initial state of a flow, from JSON; `option` names where it is given.

    Raises:
        UsageError: it is not a state of the flow.
    """
    model: type[BaseModel] = flow.state
    try:
        if text is None:
            return model()
        state = model.model_validate_json(text)
        refuse_unknown(model, msgspec.json.decode(text))
        return state
    except ValidationError as error:
        remedy = f"Give a state with {option}." if text is None else f"Correct {option}."
        faults = "; ".join(map(_fault, error.errors()))
        raise UsageError(f"This is no {model.__name__}: {faults}. {remedy}") from error


def refuse_unknown(model: type[BaseModel], given: Json) -> None:
    """Refuse keys that are not fields of the state, unless its model handles them.

    Raises:
        UsageError: there are such keys.
    """
    if model.model_config.get("extra") is not None:
        return
    known = {field.alias or name for name, field in model.model_fields.items()}
    known |= model.model_fields.keys()
    for key in as_object(given) or {}:
        if key not in known:
            near = nearest(key, sorted(known))
            remedy = f"Did you mean {near!r}?" if near else f"It has: {', '.join(sorted(known))}."
            raise UsageError(f"A {model.__name__} has no field {key!r}. {remedy}")


def _fault(detail: Any) -> str:
    where = ".".join(map(str, detail["loc"]))
    return f"{where}: {detail['msg']}" if where else str(detail["msg"])
