"""The forms of outputs as providers take them: those of objects."""

from typing import Any

from msgspec.structs import replace

from weft.agents.logic.outputs.reading import read_output
from weft.agents.spec import Answer, OutputSchema
from weft.kernel.values import Json, as_object

# Where an output stands that is no object.
INNER = "response"


def object_form(output: OutputSchema) -> dict[str, Any]:
    """The form of an output as that of an object, which holds it if it is none itself."""
    if _is_object(output):
        return output.schema
    form = dict(as_object(output.schema) or {})
    shared = {"$defs": form.pop("$defs")} if "$defs" in form else {}
    return {
        "type": "object",
        "properties": {INNER: form},
        "required": [INNER],
        "additionalProperties": False,
        **shared,
    }


def with_output(output: OutputSchema, answer: Answer, given: Json = None) -> Answer:
    """The answer with what was given in the form of an object, or else said; a text that is no
    output is left to whoever checks it."""
    if given is None and _is_object(output):
        return answer
    try:
        value = read_output(answer.text) if given is None else given
    except ValueError:
        return answer
    if not _is_object(output):
        value = (as_object(value) or {}).get(INNER, value)
    return replace(answer, output=value)


def _is_object(output: OutputSchema) -> bool:
    return (as_object(output.schema) or {}).get("type") == "object"
