"""JSON Schemas of the files of a workflow, for editors and generators.

`FILES` describes each file by its models and its shape; add another file there.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, get_args

import msgspec
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from turnloom.agents.logic.outputs.shipped import SCHEMA
from turnloom.agents.spec import Agent, DeclaredServer, Script, Tool
from turnloom.conversation.spec import (
    FOREIGN_RULE,
    FOREIGN_SETUP,
    FOREIGN_START,
    FOREIGN_TOOL,
    FOREIGN_UI,
    Handoff,
    Orchestrator,
    Startup,
    UiConfig,
)
from turnloom.errors import UsageError
from turnloom.guards.spec import RunBudget, Selection
from turnloom.hooks import logic as hooks
from turnloom.hooks.spec import LifecycleTool, MessageHook
from turnloom.kernel.values import nearest
from turnloom.variables.logic.migration.layout import FOREIGN as FOREIGN_VARIABLE
from turnloom.variables.logic.triggers import definition_model
from turnloom.variables.spec import Exposure, TimerTrigger

Schema = dict[str, Any]

_DIALECT = "https://json-schema.org/draft/2020-12/schema"

# Keys that also accept a string as a short form.
_TEXTS = (
    (Agent, "engine"),
    (TimerTrigger, "after"),
    (LifecycleTool, "after"),
    (Selection, "category"),
    (RunBudget, "wall_time"),
)
_TEXT: Schema = {"type": "string"}

# Keys, or values of keys, of workflows from other systems.
_ALSO: tuple[tuple[str, str, Schema], ...] = (
    ("Tool", "agent", {"type": "array", "items": _TEXT, "minItems": 1}),
    ("Tool", "ui", {"type": "object", "additionalProperties": {"type": "null"}}),
    ("Exposure", "agent_name", _TEXT),
    ("Exposure", "agent", _TEXT),
    ("Derived", "transitions", {"type": ["array", "null"], "maxItems": 0}),
    ("Agent", "structured_output", _TEXT),
    ("Orchestrator", "workflow_startup_mode", {"enum": [*get_args(Startup), None]}),
    ("Orchestrator", "orchestration_pattern", {"const": "ag2_network"}),
    ("Tool", "auto_tool_call", {"type": ["boolean", "null"]}),
    ("Tool", "tool_type", {"const": "UI_Surface"}),
    ("LifecycleTool", "trigger", {"enum": ["on_start", "on_complete", "on_fail"]}),
    ("Handoff", "condition", {"type": "boolean"}),
    *(("Ui", key, {}) for key in FOREIGN_UI),
    *(("VariableDefinition", key, {}) for key in FOREIGN_VARIABLE),
    *(("Handoff", key, {}) for key in FOREIGN_RULE),
    *(("Tool", key, {}) for key in FOREIGN_TOOL),
    *(("Agent", key, {}) for key in FOREIGN_SETUP),
    *(("Orchestrator", key, {}) for key in FOREIGN_START),
    *(("LifecycleTool", key, {}) for key in hooks.FOREIGN),
)

# Keys of lists that also accept a single entry.
_ALONE = ((Agent, "context"),)


class FileSchema(NamedTuple):
    """The content of a file: its models, its shape, and its optional outer key.

    `beside` has the keys allowed next to the outer key; `parts` the other definitions that the
    shape refers to.
    """

    models: tuple[type[BaseModel], ...]
    shape: Schema
    key: str | None = None
    beside: Schema = {}
    parts: Schema = {}


def _variables() -> FileSchema:
    definition = definition_model()
    keys = {"definitions": _named(definition), "agents": _named(Exposure)}
    shape = {"type": "object", "properties": keys, "additionalProperties": False}
    return FileSchema((definition, Exposure), shape, "context_variables")


def _handoffs() -> FileSchema:
    # An empty object remains when the last rule of a file is removed.
    shape = {"type": ["array", "object", "null"], "items": _ref(Handoff), "maxProperties": 0}
    return FileSchema((Handoff,), shape, "handoff_rules")


def _tools() -> FileSchema:
    keys = {
        "tools": _listed(Tool),
        "lifecycle_tools": _listed(LifecycleTool),
        "mcp_servers": _named(DeclaredServer),
    }
    shape = {"type": ["object", "null"], "properties": keys, "additionalProperties": False}
    return FileSchema((Tool, LifecycleTool, DeclaredServer), shape)


def _outputs() -> FileSchema:
    registry = {
        "type": ["object", "null"],
        "additionalProperties": {"type": ["string", "null"]},
    }
    model = {
        "if": {"type": "object", "properties": {"type": {"const": SCHEMA}}, "required": ["type"]},
        "then": {"$ref": "#/$defs/shipped"},
        "else": {"$ref": "#/$defs/field"},
    }
    models = {
        "type": ["object", "array", "null"],
        "additionalProperties": model,
        "items": {**model, "required": ["name"]},
    }
    keys = {"models": models, "registry": registry}
    shape = {"type": ["object", "null"], "properties": keys, "additionalProperties": False}
    parts = {"field": _field(), "shipped": _shipped()}
    return FileSchema((), shape, "structured_outputs", {"registry": registry}, parts=parts)


def _shipped() -> Schema:
    """A model that names one of these schemas."""
    return {
        "properties": {"name": _TEXT, "type": _TEXT, SCHEMA: {"enum": list(FILES)}},
        "required": [SCHEMA],
        "additionalProperties": False,
    }


def _field() -> Schema:
    """A field: the name of a type or a model, or an object with more detail."""
    field = {"$ref": "#/$defs/field"}
    words: Schema = {"type": "array", "minItems": 1}
    keys: Schema = {
        "name": _TEXT,
        "type": _TEXT,
        "description": _TEXT,
        "fields": {"type": ["object", "null"], "additionalProperties": field},
        "items": field,
        "variants": {"type": "array", "items": field},
        "values": {"anyOf": [words, field]},
        "literal": words,
        "enum": words,
        "additional": field,
        "default": {},
        "optional": {"type": "boolean"},
        "required": {"anyOf": [{"type": "boolean"}, {"type": "array", "items": _TEXT}]},
    }
    return {
        "type": ["string", "object"],
        "properties": keys,
        "required": ["type"],
        "additionalProperties": False,
    }


def _shown() -> FileSchema:
    # Other interfaces read keys of their own.
    model = _allow_nulls(_definitions((UiConfig,)))["UiConfig"]
    return FileSchema((), {**model, "additionalProperties": True})


FILES: dict[str, Callable[[], FileSchema]] = {
    "context_variables": _variables,
    "orchestrator": lambda: FileSchema((Orchestrator,), _ref(Orchestrator), "orchestrator"),
    "agents": lambda: FileSchema((Agent,), _named(Agent, at_least=1), "agents"),
    "handoffs": _handoffs,
    "tools": _tools,
    "structured_outputs": _outputs,
    "hooks": lambda: FileSchema((MessageHook,), _listed(MessageHook), "hooks"),
    "ui_config": _shown,
    "script": lambda: FileSchema((Script,), _ref(Script)),
}


def schema_of(name: str) -> Schema:
    """The schema of a file, with and without its outer key.

    Raises:
        UsageError: no file has this name.
    """
    if name not in FILES:
        hint = nearest(name, FILES)
        remedy = f"Did you mean {hint!r}?" if hint else f"Names: {', '.join(FILES)}."
        raise UsageError(f"Unknown schema {name!r}. {remedy}")
    file = FILES[name]()
    inner = {"$ref": f"#/$defs/{name}"}
    root = inner if file.key is None else _enclosed(file.key, inner, file.beside)
    definitions = {
        name: file.shape,
        "file": root,
        **_allow_nulls(_definitions(file.models)),
        **file.parts,
    }
    return {"$schema": _DIALECT, "title": name, **_wrapped(name), "$defs": definitions}


# The schemas that an agent may answer with: each file of a workflow, by name.
SCHEMAS = {name: partial(schema_of, name) for name in FILES}


def written(schema: Schema) -> bytes:
    """A schema as the text of a file, without the final newline."""
    return msgspec.json.format(msgspec.json.encode(schema), indent=2)


def _enclosed(key: str, inner: Schema, beside: Schema) -> Schema:
    """A schema under an optional key, next to which only `beside` is allowed."""
    within = {"properties": {key: inner, **beside}, "additionalProperties": False}
    return {"if": {"type": "object", "required": [key]}, "then": within, "else": inner}


def _wrapped(name: str) -> Schema:
    """The schema of a file, also below its own name as the only key."""
    file = {"$ref": "#/$defs/file"}
    outer: Schema = {"type": "object", "required": [name], "maxProperties": 1}
    if name == "tools":  # which also has a key of its own name for a list
        keys = [{"required": [key]} for key in ("tools", "lifecycle_tools", "mcp_servers")]
        outer["properties"] = {name: {"type": "object", "anyOf": keys}}
    return {"if": outer, "then": {"properties": {name: file}}, "else": file}


def _named(model: type[BaseModel], at_least: int = 0) -> Schema:
    """Entries by name, or a list of entries with `name`."""
    return {
        "type": ["object", "array"] if at_least else ["object", "array", "null"],
        "propertyNames": {"minLength": 1},
        "additionalProperties": _ref(model),
        "items": {**_ref(model), "anyOf": _NAMES.get(model, _NAME)},
        **({"minProperties": at_least, "minItems": at_least} if at_least else {}),
    }


_NAME: list[Schema] = [{"required": ["name"]}]
_NAMES: dict[type[BaseModel], list[Schema]] = {
    Exposure: [{"required": [key]} for key in ("name", "agent_name", "agent")]
}


def _listed(model: type[BaseModel]) -> Schema:
    return {"type": ["array", "null"], "items": _ref(model)}


def _ref(model: type[BaseModel]) -> Schema:
    return {"$ref": f"#/$defs/{model.__name__}"}


def _allow_nulls(definitions: Schema) -> Schema:
    """Let keys with a default be null, which is the same as leaving them out."""
    for each in definitions.values():
        keys: Schema = each.get("properties", {})
        for key, schema in keys.items():
            if schema.get("default") is not None:
                keys[key] = {"anyOf": [schema, {"type": "null"}], "default": schema["default"]}
    return definitions


def _definitions(models: tuple[type[BaseModel], ...]) -> Schema:
    """The schemas of models and their parts; entries by name may omit their `name`."""
    _, found = models_json_schema([(model, "validation") for model in models])
    definitions: Schema = found.get("$defs", {})
    for model in models:
        entry = definitions[model.__name__]
        entry["required"] = [key for key in entry.get("required", ()) if key != "name"]
    for model, key in _TEXTS:
        if model.__name__ in definitions:
            keys = definitions[model.__name__]["properties"]
            keys[key] = {"anyOf": [keys[key], {"type": "string"}]}
    for model, key, schema in _ALSO:
        if model in definitions:
            keys = definitions[model]["properties"]
            keys[key] = {"anyOf": [keys[key], schema]} if key in keys else schema
    for model, key in _ALONE:
        if model.__name__ in definitions:
            keys = definitions[model.__name__]["properties"]
            keys[key] = {"anyOf": [keys[key], keys[key]["items"]]}
    return definitions
