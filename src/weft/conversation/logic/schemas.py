"""JSON Schemas of the files of a workflow, so that editors and generators know what is allowed."""

from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from weft.agents.spec import Agent, Script
from weft.conversation.spec import Handoff, Orchestrator
from weft.variables.logic.triggers import definition_model
from weft.variables.spec import Exposure, TimerExpired

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_TEXT = {"type": "string"}


def schema_of(part: str) -> dict[str, Any]:
    """The schema of what a file declares, its outer key left out and its entries by name."""
    match part:
        case "orchestrator":
            found = Orchestrator.model_json_schema()
        case "script":
            found = Script.model_json_schema()
        case "handoffs":
            found = _made({"type": "array", "items": _ref(Handoff)}, Handoff)
        case "agents":
            found = _made(_by_name(Agent), Agent)
        case "context_variables":
            definition = definition_model()
            parts = {"definitions": _by_name(definition), "agents": _by_name(Exposure)}
            root = {"type": "object", "properties": parts, "additionalProperties": False}
            found = _made(root, definition, Exposure)
        case _:
            raise ValueError(f"There is no schema of {part!r}.")
    return {"$schema": _DIALECT, **found, "title": part}


def _made(root: dict[str, Any], *models: type[BaseModel]) -> dict[str, Any]:
    """A schema about models; those that are entries by name may leave their `name` out."""
    _, found = models_json_schema([(model, "validation") for model in models])
    definitions = found["$defs"]
    for model in models:
        entry = definitions[model.__name__]
        entry["required"] = [key for key in entry.get("required", ()) if key != "name"]
    _widen(definitions, Agent, "engine")
    _widen(definitions, TimerExpired, "after")
    return root | {"$defs": definitions}


def _widen(definitions: dict[str, Any], model: type[BaseModel], key: str) -> None:
    """Allow the text that a model reads into what it declares."""
    if model.__name__ in definitions:
        keys = definitions[model.__name__]["properties"]
        keys[key] = {"anyOf": [keys[key], _TEXT]}


def _by_name(model: type[BaseModel]) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": _ref(model)}


def _ref(model: type[BaseModel]) -> dict[str, Any]:
    return {"$ref": f"#/$defs/{model.__name__}"}
