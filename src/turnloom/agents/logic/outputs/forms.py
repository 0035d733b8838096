"""Outputs as providers take their forms: those of objects only."""

from typing import Any

from turnloom.agents.logic.outputs.reading import read_output
from turnloom.agents.spec import OutputSchema
from turnloom.kernel.values import Json, as_data, as_object

# Where an output stands that is no object.
INNER = "response"


def _is_object(output: OutputSchema) -> bool:
    return (as_object(output.schema) or {}).get("type") == "object"


def form_of(output: OutputSchema) -> dict[str, Any]:
    """The form of an output as that of an object, which holds it if it is none itself."""
    if _is_object(output):
        return output.schema
    form = dict(as_object(output.schema) or {})
    shared = {"$defs": form.pop("$defs")} if "$defs" in form else {}
    return _around(form) | shared


def around_form(output: OutputSchema) -> str:
    """What stands around the form of an output that is no object; nothing around that of one."""
    return "" if _is_object(output) else as_data(_around({}))


def _around(form: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {INNER: form},
        "required": [INNER],
        "additionalProperties": False,
    }


def given_output(output: OutputSchema, text: str, given: Json = None) -> Json:
    """The output that a model gave, or wrote as text; nothing where whoever checks the text is to
    read it."""
    if given is None and _is_object(output):
        return None
    try:
        value = read_output(text) if given is None else given
    except ValueError:
        return None
    return value if _is_object(output) else (as_object(value) or {}).get(INNER, value)
