"""Output schemas for providers that accept only objects."""

from typing import Any

from turnloom.agents.logic.outputs.reading import read_output
from turnloom.agents.spec import OutputSchema
from turnloom.kernel.values import Json, as_data, as_object

# The key that holds an output that is not an object.
INNER = "response"


def _is_object(output: OutputSchema) -> bool:
    return (as_object(output.schema) or {}).get("type") == "object"


def form_of(output: OutputSchema) -> dict[str, Any]:
    """The schema of an output as an object schema; other types are wrapped."""
    if _is_object(output):
        return output.schema
    form = dict(as_object(output.schema) or {})
    shared = {"$defs": form.pop("$defs")} if "$defs" in form else {}
    return _around(form) | shared


def around_form(output: OutputSchema) -> str:
    """The wrapper schema of an output that is not an object; empty for objects."""
    return "" if _is_object(output) else as_data(_around({}))


def _around(form: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {INNER: form},
        "required": [INNER],
        "additionalProperties": False,
    }


def given_output(output: OutputSchema, text: str, given: Json = None) -> Json:
    """The output that a model returned as data or as text; None if the text is parsed later."""
    if given is None and _is_object(output):
        return None
    try:
        value = read_output(text) if given is None else given
    except ValueError:
        return None
    return value if _is_object(output) else (as_object(value) or {}).get(INNER, value)
