"""Forms for the answers that tools ask for: the fields of a JSON Schema, and what typed words
mean."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import NamedTuple

import msgspec

from turnloom.agents.logic.answers import misanswer
from turnloom.agents.spec import Question
from turnloom.kernel.values import Json, as_array, as_data, as_object, type_names

# More references than this form a circle, or lead to nothing that a person can be asked for.
REFERENCES = 10

_YES_NO = {"y": True, "yes": True, "true": True, "n": False, "no": False, "false": False}
_EXAMPLES: dict[str, Json] = {
    "integer": 0,
    "number": 0,
    "boolean": True,
    "array": [],
    "object": {},
    "null": None,
}
_ENUMERATED = re.compile(r"\d{1,4}", re.ASCII)


class GivenValue(NamedTuple):
    """A value that was given; it may be null."""

    value: Json


class FormField(NamedTuple):
    """One value to type: a property of the answer or, without a name, the whole answer."""

    name: str
    schema: Mapping[str, Json]
    required: bool
    nullable: bool

    @property
    def choices(self) -> list[Json]:
        """The values that it may have, if they are listed."""
        return [self.schema["const"]] if "const" in self.schema else self.schema.get("enum", [])

    @property
    def kind(self) -> str:
        """Its JSON type, if it has exactly one."""
        kinds = self.schema.get("type", "")
        listed = [kind for kind in as_array(kinds) or () if kind != "null"]
        return listed[0] if len(listed) == 1 else kinds if isinstance(kinds, str) else ""

    @property
    def description(self) -> str:
        """Its description, if the schema has one."""
        said = self.schema.get("description", "")
        return " ".join(said.split())

    @property
    def demand(self) -> str:
        """The accepted values in a few words."""
        if self.choices:
            return " | ".join(map(word, self.choices))
        return type_names.get(self.kind, "JSON")

    @property
    def example(self) -> Json:
        """An example value."""
        return self.choices[0] if self.choices else _EXAMPLES.get(self.kind, "your answer")

    def pick(self, typed: str) -> GivenValue | None:
        """The choice of a number."""
        number = int(typed) if _ENUMERATED.fullmatch(typed) else 0
        return GivenValue(self.choices[number - 1]) if 0 < number <= len(self.choices) else None

    def readings(self, typed: str) -> Iterator[Json]:
        """The values that the words may mean, the likeliest first."""
        if self.choices:
            yield from (each for each in self.choices if word(each) == typed)
            yield from (each for each in self.choices if word(each).lower() == typed.lower())
        elif self.kind == "boolean":
            yield from (_YES_NO[each] for each in (typed.lower(),) if each in _YES_NO)
        elif self.kind == "string":
            yield typed
        else:
            yield from (given.value for given in decoded(typed))
            yield from () if self.kind else (typed,)


class AnswerForm:
    """The form of an answer to a tool's question."""

    def __init__(self, question: Question) -> None:
        self._question = question
        root = as_object(question.schema) or {}
        whole, nullable = _plain(root, root)
        properties = as_object(whole.get("properties")) or {}
        required: list[str] = as_array(whole.get("required")) or []
        # Without a field for a required property, the form could never be completed.
        self.is_object = bool(properties) and set(required) <= set(properties)
        self._parts = {"$defs": root.get("$defs", {}), "properties": properties}
        self.fields = [FormField("", whole, True, nullable)]
        if self.is_object:
            ordered = sorted(properties, key=lambda name: name not in required)
            self.fields = [
                FormField(name, schema, name in required, nullable)
                for name in ordered
                for schema, nullable in (_plain(as_object(properties[name]) or {}, root),)
            ]

    @property
    def demand(self) -> str:
        """An example of an answer, on one line."""
        if not self.is_object:
            return self.fields[0].demand if self._question.schema is not None else "JSON or a text"
        parts = (
            f"{each.name}{'' if each.required else '?'}: {each.demand}" for each in self.fields
        )
        return f"{{{', '.join(parts)}}}"

    @property
    def example(self) -> str:
        """An example answer for `turnloom answer`; what cannot be guessed is left open."""
        alone = self._alone
        if alone is not None and (alone.choices or not alone.name):
            return word(alone.example)
        return as_data({each.name: each.example for each in self.fields if each.required})

    @property
    def _alone(self) -> FormField | None:
        """Its only field, or its only required one."""
        needed = [each for each in self.fields if each.required] or self.fields
        return needed[0] if len(needed) == 1 else None

    def typed(self, field: FormField, typed: str) -> GivenValue | str:
        """The value of a typed field, or the error."""
        found = _fitting(field.readings(typed), partial(self._misfit, field))
        picked = found if isinstance(found, GivenValue) else field.pick(typed)
        if picked is not None:
            return picked
        if field.choices:
            return f"{_none_of(typed, field.choices)}."
        return found or f"{as_data(typed)} is not {field.demand}."

    def _misfit(self, field: FormField, value: Json) -> str | None:
        """The problem of a field, regardless of the others."""
        if not field.name:
            return misanswer(self._question, value)
        alone = msgspec.structs.replace(self._question, schema=self._parts)
        return misanswer(alone, {field.name: value})

    def read(self, text: str) -> GivenValue | str:
        """The answer that a command-line text stands for, or the error.

        The text is JSON; plain words suffice if the answer is a single value, or needs only one
        property.
        """
        found = _fitting(self._meanings(text), partial(misanswer, self._question))
        return found or self._unread(text)

    def _unread(self, text: str) -> str:
        """The problem of a text that is neither JSON nor a word for an answer."""
        alone = self._alone
        choices = alone.choices if alone is not None else ()
        return _none_of(text, choices) if choices else f"{as_data(text)} is not JSON"

    def _meanings(self, text: str) -> Iterator[Json]:
        for given in decoded(text):
            yield given.value
        if not self.is_object:
            yield from self.fields[0].readings(text)
        elif (alone := self._alone) is not None:
            yield from ({alone.name: each} for each in alone.readings(text))


def _fitting(values: Iterable[Json], misfit: Callable[[Json], str | None]) -> GivenValue | str:
    """The first value that fits; else what is wrong with the first one, if there is one."""
    problems: list[str] = []
    for value in values:
        problem = misfit(value)
        if problem is None:
            return GivenValue(value)
        problems.append(problem)
    return problems[0] if problems else ""


def _none_of(text: str, choices: Iterable[Json]) -> str:
    return f"{as_data(text)} is none of these: {', '.join(map(word, choices))}"


def word(value: Json) -> str:
    """A value as a person types it."""
    return value if isinstance(value, str) else as_data(value)


def decoded(text: str) -> list[GivenValue]:
    """The value of a JSON text, if it is JSON."""
    try:
        return [GivenValue(msgspec.json.decode(text))]
    except (ValueError, RecursionError):  # it is plain text, then
        return []


def _plain(schema: Mapping[str, Json], root: Mapping[str, Json]) -> tuple[dict[str, Json], bool]:
    """A schema with its references resolved, and whether null is allowed."""
    found, nullable = dict(schema), False
    for _ in range(REFERENCES):
        kinds = as_array(found.get("type")) or ()
        nullable = nullable or "null" in kinds
        inside = as_array(found.get("anyOf") or found.get("oneOf") or found.get("allOf")) or []
        real = [each for each in inside if each != {"type": "null"}]
        if isinstance(target := found.pop("$ref", None), str):
            found = {**_at(root, target), **found}
        elif len(real) == 1:
            nullable = nullable or len(inside) > 1
            rest = {key: found[key] for key in found if key not in ("anyOf", "oneOf", "allOf")}
            found = {**(as_object(real[0]) or {}), **rest}
        else:
            break
    return found, nullable


def _at(root: Mapping[str, Json], pointer: str) -> dict[str, Json]:
    """The part of the schema at a reference, if it exists."""
    found: Json = dict(root)
    for step in filter(None, pointer.removeprefix("#").split("/")):
        found = (as_object(found) or {}).get(step.replace("~1", "/").replace("~0", "~"))
    return as_object(found) or {}
