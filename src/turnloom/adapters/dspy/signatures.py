"""DSPy signatures for tasks."""

import json
import keyword
import re
from collections.abc import Container, Iterable, Iterator, Mapping
from itertools import chain, count, groupby
from typing import Any, Literal, NamedTuple

from dspy import InputField, OutputField, Signature
from pydantic_core import core_schema

from turnloom.agents.logic.dialogues import AGAIN, CONTINUE, WRONG
from turnloom.agents.logic.outputs.forms import form_of
from turnloom.agents.spec import WORKFLOW, OutputSchema, Task
from turnloom.kernel.values import Json, as_array, as_data, as_object

_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def inputs_of(task: Task) -> dict[str, Any]:
    """All inputs that a task can fill, by name. Several artifacts of one type form a list."""
    others = (message.text for message in reversed(task.transcript) if message.author != task.agent)
    return {
        "conversation": "\n".join(_conversation(task)),
        "question": next(others, CONTINUE),
        "system": task.system,
        "context": task.context.items,
        **artifacts_of(task),
    }


def artifacts_of(task: Task) -> dict[str, Any]:
    """The artifacts that woke the agent, by type."""
    found: dict[str, list[dict[str, Json]]] = {}
    for artifact in task.inputs:
        found.setdefault(snake(artifact.type.rpartition(".")[2]), []).append(artifact.payload)
    return {name: each[0] if len(each) == 1 else each for name, each in found.items()}


def snake(name: str) -> str:
    """The name of a type in snake case."""
    return _HUMP.sub("_", name).lower()


def _conversation(task: Task) -> Iterator[str]:
    """The messages with their authors. On a board, the inputs replace the transcript."""
    for message in () if task.inputs else task.transcript:
        yield f"{message.author}: {message.text}"
    yield from corrections(task)


def corrections(task: Task) -> Iterator[str]:
    """The agent's earlier answers in this turn, and what was wrong with each."""
    for exchange in task.exchanges:
        if exchange.text:
            yield f"{task.agent}: {exchange.text}"
        if exchange.problem:
            yield f"{WORKFLOW}: {WRONG.strip()}\n{exchange.problem}{AGAIN}"


def added_to(task: Task, shown: Iterable[str]) -> tuple[str, ...]:
    """Text in the prompt that is not part of the task: blocks of lines, each once, in order."""
    inputs = {line.strip() for text in _texts(task) for line in text.splitlines()}
    found: dict[str, None] = {}
    for text in shown:
        lines = groupby(
            text.splitlines(), lambda line: bool(line.strip()) and line.strip() in inputs
        )
        runs = ("\n".join(run).strip("\n") for is_known, run in lines if not is_known)
        found |= dict.fromkeys(run for run in runs if run.strip())
    return tuple(found)


def _texts(task: Task) -> Iterator[str]:
    """The texts of a task, as they may appear in a prompt."""
    yield task.system
    for message in task.transcript:
        yield from (message.text, f"{message.author}: {message.text}")
    for exchange in task.exchanges:
        yield from (f"{task.agent}: {exchange.text}", exchange.problem)
    inputs: Mapping[str, Any] = {"": task.context.items, **artifacts_of(task)}
    yield from (json.dumps(value, ensure_ascii=False) for value in inputs.values())


# The name of the output of a task without an output schema.
ANSWER = "answer"

_PLAIN: Mapping[str, Any] = {
    "string": str,
    "integer": int,
    "number": float,
    "boolean": bool,
    "null": type(None),
}
# Keywords that a Python type expresses, or that matter to no model.
_TITLED = {"type", "title"}
_COVERED = {*_TITLED, "description", "default", "enum", "items", "anyOf"}
_OTHER = re.compile(r"\W")

_make: Any = Signature


class SignatureField(NamedTuple):
    """An output field of a signature."""

    name: str
    type: Any = str
    about: str = ""
    is_required: bool = True


def signature_of(task: Task) -> tuple[type[Signature], dict[str, Any]]:
    """A signature with the task's instructions, and its inputs: the artifacts that woke the agent
    and their context, or else the conversation."""
    asked = fields_of(task.output) if task.output else {ANSWER: SignatureField(ANSWER)}
    taken = {field.name for field in asked.values()}
    given = {_field_name(name, taken): value for name, value in _inputs(task)}
    fields: dict[str, Any] = {
        name: (_input_type(value), InputField()) for name, value in given.items()
    }
    for field in asked.values():
        type = field.type if field.is_required else field.type | None
        options = {"desc": field.about} if field.about else {}
        options |= {} if field.is_required else {"default": None}
        fields[field.name] = (type, OutputField(**options))
    return _make(fields, task.system or None), given


def _inputs(task: Task) -> list[tuple[str, Any]]:
    """The inputs of a signature. The conversation contains the context, so they exclude each
    other."""
    inputs, woke = inputs_of(task), artifacts_of(task)
    names = [*woke, *(["context"] if woke and inputs["context"] else [])]
    if not woke or task.exchanges:
        names.append("conversation")
    return [(name, inputs[name]) for name in names]


def _input_type(value: Any) -> Any:
    if isinstance(value, str):
        return str
    return list[dict[str, Any]] if isinstance(value, list) else dict[str, Any]


def fields_of(output: OutputSchema) -> dict[str, SignatureField]:
    """The fields of an output by key, or one field for the whole if its keys are not all known."""
    form = form_of(output)
    shared = as_object(form.get("$defs")) or {}
    keys = as_object(form.get("properties")) or {}
    if not keys or form.get("additionalProperties"):
        name = snake(_OTHER.sub("_", output.name))
        return {
            "": SignatureField(_field_name(name, ()), _opaque_type(name, _inlined(form, shared)))
        }
    required = as_array(form.get("required")) or []
    found: dict[str, SignatureField] = {}
    for key, schema in keys.items():
        name = _field_name(key, [field.name for field in found.values()])
        found[key] = _field(name, _inlined(schema, shared), key in required)
    return found


def _field_name(key: str, taken: Container[str]) -> str:
    """A key as a valid field name."""
    plain = _OTHER.sub("_", key)
    is_free = plain.isidentifier() and not keyword.iskeyword(plain) and not plain.startswith("_")
    if not is_free or plain.startswith("model_") or hasattr(Signature, plain):
        plain = f"field_{plain}"
    names = chain((plain,), (f"{plain}_{number}" for number in count(2)))
    return next(name for name in names if name not in taken)


def _field(name: str, schema: Json, is_required: bool) -> SignatureField:
    """The field for a schema. Constraints that its Python type does not express go into its
    description."""
    form = as_object(schema) or {}
    about = str(form.get("description", ""))
    type = _type(form)
    if type is None:
        return SignatureField(
            name, _opaque_type(str(form.get("title") or name), form), about, is_required
        )
    rest = {key: value for key, value in form.items() if key not in _COVERED}
    return SignatureField(
        name, type, f"{about} {as_data(rest) if rest else ''}".strip(), is_required
    )


def _type(form: Mapping[str, Json]) -> Any:
    """The Python type of a simple schema, else None."""
    words = as_array(form.get("enum")) or ()
    if words:
        is_simple = all(isinstance(word, str | int) for word in words)
        return Literal[tuple(words)] if is_simple else None
    kinds = [_plain(each) for each in as_array(form.get("anyOf")) or ()]
    if len(kinds) == 2 and type(None) in kinds and all(kinds):
        return kinds[0] | kinds[1]
    if form.get("type") == "array" and (inner := _plain(form.get("items"))):
        return list[inner]
    return _plain({"type": form.get("type")})


def _plain(schema: Json) -> Any:
    """The Python type of a schema that has only a plain type."""
    form = as_object(schema) or {}
    kind = form.get("type")
    return _PLAIN.get(kind) if isinstance(kind, str) and form.keys() <= _TITLED else None


def _opaque_type(name: str, form: Json) -> Any:
    """A type that shows models a JSON schema and accepts any data; the caller validates it."""

    def any_data(*_: Any) -> Any:
        return core_schema.any_schema()

    def json_schema(*_: Any) -> Any:
        return form

    hooks = {
        "__get_pydantic_core_schema__": staticmethod(any_data),
        "__get_pydantic_json_schema__": staticmethod(json_schema),
    }
    return type(_OTHER.sub("_", name), (), hooks)


def _inlined(schema: Json, shared: Mapping[str, Json], inside: tuple[str, ...] = ()) -> Any:
    """A schema with its references inlined. A recursive reference accepts any data."""
    if (parts := as_array(schema)) is not None:
        return [_inlined(each, shared, inside) for each in parts]
    if (form := as_object(schema)) is None:
        return schema
    name = str(form.get("$ref", "")).removeprefix("#/$defs/")
    if name in inside:
        return {}
    if name:
        rest = {key: value for key, value in form.items() if key != "$ref"}
        return _inlined({**(as_object(shared.get(name)) or {}), **rest}, shared, (*inside, name))
    return {key: _inlined(each, shared, inside) for key, each in form.items() if key != "$defs"}
