"""Which of several forms a value was meant to have, from what can be seen without going deeper."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from weft.agents.spec.outputs import (
    ArrayOf,
    Either,
    Form,
    Key,
    OneOf,
    Plain,
    Record,
    Reference,
)
from weft.kernel.values import Json, kind_of
from weft.variables.logic.types import same


def labels_of(forms: Sequence[Form]) -> list[str]:
    """What each form is called beside the others."""
    names = [_label(form) for form in forms]
    return [
        f"({name})" if names.count(name) == 1 else f"({name} {number})"
        for number, name in enumerate(names, 1)
    ]


def _label(form: Form) -> str:
    match form:
        case Plain(type=type):
            return type
        case Reference(model=model):
            return model
        case OneOf():
            return "literal"
        case ArrayOf():
            return "array"
        case Either():
            return "union"
        case _:
            return "object"


def is_null(form: Form) -> bool:
    """Whether a form is that of null alone."""
    return isinstance(form, Plain) and form.type == "null"


def may_be(form: Form, value: Json, models: Mapping[str, Form]) -> bool:
    """Whether a value can have a form; what lies inside of it is not looked at any closer."""
    return _Look(models).at(form, value)


def is_like(form: Form, value: Json, models: Mapping[str, Form]) -> bool:
    """Whether a value seems to be meant as a form: its words say so, the rest may be wrong."""
    return _Look(models, loose=True).at(form, value)


class _Look(NamedTuple):
    models: Mapping[str, Form]
    loose: bool = False

    def at(self, form: Form, value: Json) -> bool:
        kind = kind_of(value)
        match form:
            case Plain(type=type):
                return type in ("any", kind) or _is_numeric(type, value)
            case OneOf(words=words):
                return any(same(word, value) for word in words)
            case Reference(model=model):
                return self.at(self.models[model], value)
            case Either(variants=variants):
                return any(self.at(each, value) for each in variants)
            case Record(keys=keys):
                return kind == "object" and self._at_keys(keys, value)
            case _:
                return kind == ("array" if isinstance(form, ArrayOf) else "object")

    def _at_keys(self, keys: Mapping[str, Key], value: Mapping[str, Json]) -> bool:
        needed = {name for name, key in keys.items() if key.required}
        return (self.loose or needed <= value.keys() <= keys.keys()) and all(
            self.at(keys[name].form, part)
            for name, part in value.items()
            if name in keys and self._tells(keys[name].form, part)
        )

    def _tells(self, form: Form, part: Json) -> bool:
        """Whether a part says what the whole is: a plain value, or one of a few words at least."""
        if self.loose:
            form = self.models[form.model] if isinstance(form, Reference) else form
            return isinstance(form, OneOf)
        return not isinstance(part, dict | list)


def _is_numeric(type: str, value: Json) -> bool:
    """Whether a number is of a type although it is written as one of the other: 5 and 5.0."""
    if kind_of(value) == "integer":
        return type == "number"
    return type == "integer" and isinstance(value, float) and value.is_integer()
