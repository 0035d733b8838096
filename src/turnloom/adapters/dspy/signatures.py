"""DSPy signatures for tasks."""

import json
import keyword
import re
from collections.abc import Container, Iterable, Iterator, Mapping
from itertools import chain, count, groupby
from typing import Any, Literal, NamedTuple

from dspy import InputField, OutputField, Signature
from pydantic_core import core_schema

from turnloom.agents.logic.dialogues import AGAIN, GO_ON, WRONG
from turnloom.agents.logic.outputs.forms import form_of
from turnloom.agents.spec import WORKFLOW, OutputSchema, Task
from turnloom.kernel.values import Json, as_array, as_data, as_object

_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def held_by(task: Task) -> dict[str, Any]:
    """All that a task holds; artifacts by their types, a list where several are of one type."""
    heard = (message.text for message in reversed(task.transcript) if message.author != task.agent)
    return {
        "conversation": "\n".join(_said(task)),
        "question": next(heard, GO_ON),
        "system": task.system,
        "context": task.context.items,
        **artifacts_of(task),
    }


def artifacts_of(task: Task) -> dict[str, Any]:
    """The artifacts that woke the agent, by their types."""
    found: dict[str, list[dict[str, Json]]] = {}
    for artifact in task.inputs:
        found.setdefault(snake(artifact.type.rpartition(".")[2]), []).append(artifact.payload)
    return {name: each[0] if len(each) == 1 else each for name, each in found.items()}


def snake(name: str) -> str:
    """The name of a type as that of a field."""
    return _HUMP.sub("_", name).lower()


def _said(task: Task) -> Iterator[str]:
    """What was said and by whom; on a board, where inputs say the rest, in this turn alone."""
    for message in () if task.inputs else task.transcript:
        yield f"{message.author}: {message.text}"
    yield from exchanged(task)


def exchanged(task: Task) -> Iterator[str]:
    """What the agent said in this turn before, and what was wrong with it."""
    for exchange in task.exchanges:
        if exchange.text:
            yield f"{task.agent}: {exchange.text}"
        if exchange.problem:
            yield f"{WORKFLOW}: {WRONG.strip()}\n{exchange.problem}{AGAIN}"


def added_to(task: Task, shown: Iterable[str]) -> tuple[str, ...]:
    """What stands in texts that a model was shown, and is not held by the task: runs of lines, each
    once, in order."""
    held = {line.strip() for text in _texts(task) for line in text.splitlines()}
    found: dict[str, None] = {}
    for text in shown:
        lines = groupby(text.splitlines(), lambda line: bool(line.strip()) and line.strip() in held)
        runs = ("\n".join(run).strip("\n") for is_held, run in lines if not is_held)
        found |= dict.fromkeys(run for run in runs if run.strip())
    return tuple(found)


def _texts(task: Task) -> Iterator[str]:
    """The texts of a task, as they may stand in a prompt."""
    yield task.system
    for message in task.transcript:
        yield from (message.text, f"{message.author}: {message.text}")
    for exchange in task.exchanges:
        yield from (f"{task.agent}: {exchange.text}", exchange.problem)
    held: Mapping[str, Any] = {"": task.context.items, **artifacts_of(task)}
    yield from (json.dumps(value, ensure_ascii=False) for value in held.values())


# What a text is called that is all that is asked for.
ANSWER = "answer"

_PLAIN: Mapping[str, Any] = {
    "string": str,
    "integer": int,
    "number": float,
    "boolean": bool,
    "null": type(None),
}
# What a schema says by a type alone, or to nobody who fills it in.
_TITLED = {"type", "title"}
_SAID = {*_TITLED, "description", "default", "enum", "items", "anyOf"}
_OTHER = re.compile(r"\W")

_make: Any = Signature


class SignatureField(NamedTuple):
    """A field that is asked for: its type, what is to be known of it, whether it must be given."""

    name: str
    type: Any = str
    about: str = ""
    is_required: bool = True


def signature_of(task: Task) -> tuple[type[Signature], dict[str, Any]]:
    """A signature whose instructions are the task's, and the values of its inputs: the artifacts
    that woke the agent and their context, or else the conversation."""
    asked = fields_of(task.output) if task.output else {ANSWER: SignatureField(ANSWER)}
    taken = {field.name for field in asked.values()}
    given = {_spelled(name, taken): value for name, value in _given(task)}
    fields: dict[str, Any] = {name: (_held(value), InputField()) for name, value in given.items()}
    for field in asked.values():
        type = field.type if field.is_required else field.type | None
        said = {"desc": field.about} if field.about else {}
        said |= {} if field.is_required else {"default": None}
        fields[field.name] = (type, OutputField(**said))
    return _make(fields, task.system or None), given


def _given(task: Task) -> list[tuple[str, Any]]:
    """What a signature has as inputs: nothing twice, as a conversation tells of context too."""
    held, woke = held_by(task), artifacts_of(task)
    names = [*woke, *(["context"] if woke and held["context"] else [])]
    if not woke or task.exchanges:
        names.append("conversation")
    return [(name, held[name]) for name in names]


def _held(value: Any) -> Any:
    if isinstance(value, str):
        return str
    return list[dict[str, Any]] if isinstance(value, list) else dict[str, Any]


def fields_of(output: OutputSchema) -> dict[str, SignatureField]:
    """The fields of an output by its keys, or one for the whole where those are not all known."""
    form = form_of(output)
    shared = as_object(form.get("$defs")) or {}
    keys = as_object(form.get("properties")) or {}
    if not keys or form.get("additionalProperties"):
        name = snake(_OTHER.sub("_", output.name))
        return {"": SignatureField(_spelled(name, ()), _shaped(name, _whole(form, shared)))}
    required = as_array(form.get("required")) or []
    found: dict[str, SignatureField] = {}
    for key, schema in keys.items():
        name = _spelled(key, [field.name for field in found.values()])
        found[key] = _field(name, _whole(schema, shared), key in required)
    return found


def _spelled(key: str, taken: Container[str]) -> str:
    """A key as a name that a field of a signature may have."""
    plain = _OTHER.sub("_", key)
    is_free = plain.isidentifier() and not keyword.iskeyword(plain) and not plain.startswith("_")
    if not is_free or plain.startswith("model_") or hasattr(Signature, plain):
        plain = f"field_{plain}"
    names = chain((plain,), (f"{plain}_{number}" for number in count(2)))
    return next(name for name in names if name not in taken)


def _field(name: str, schema: Json, is_required: bool) -> SignatureField:
    """A field by its schema: what a type of Python does not say of it is said in words."""
    form = as_object(schema) or {}
    about = str(form.get("description", ""))
    type = _type(form)
    if type is None:
        return SignatureField(
            name, _shaped(str(form.get("title") or name), form), about, is_required
        )
    rest = {key: value for key, value in form.items() if key not in _SAID}
    return SignatureField(
        name, type, f"{about} {as_data(rest) if rest else ''}".strip(), is_required
    )


def _type(form: Mapping[str, Json]) -> Any:
    """The type of Python that a schema means, if it is a simple one."""
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
    """The type of a schema that says nothing but a plain type."""
    form = as_object(schema) or {}
    kind = form.get("type")
    return _PLAIN.get(kind) if isinstance(kind, str) and form.keys() <= _TITLED else None


def _shaped(name: str, form: Json) -> Any:
    """A type of data that DSPy tells models the schema of; who asked for it checks it."""

    def any_data(*_: Any) -> Any:
        return core_schema.any_schema()

    def told(*_: Any) -> Any:
        return form

    hooks = {
        "__get_pydantic_core_schema__": staticmethod(any_data),
        "__get_pydantic_json_schema__": staticmethod(told),
    }
    return type(_OTHER.sub("_", name), (), hooks)


def _whole(schema: Json, shared: Mapping[str, Json], inside: tuple[str, ...] = ()) -> Any:
    """A schema with what it refers to in its place; one inside of itself is any data there."""
    if (parts := as_array(schema)) is not None:
        return [_whole(each, shared, inside) for each in parts]
    if (form := as_object(schema)) is None:
        return schema
    name = str(form.get("$ref", "")).removeprefix("#/$defs/")
    if name in inside:
        return {}
    if name:
        beside = {key: value for key, value in form.items() if key != "$ref"}
        return _whole({**(as_object(shared.get(name)) or {}), **beside}, shared, (*inside, name))
    return {key: _whole(each, shared, inside) for key, each in form.items() if key != "$defs"}
