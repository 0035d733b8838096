"""Which of several forms a value was meant to have, from what can be seen without going deeper."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from turnloom.agents.spec.outputs import (
    ArrayOf,
    Either,
    Form,
    Key,
    OneOf,
    Plain,
    Record,
    Reference,
)
from turnloom.kernel.values import Json, kind_of
from turnloom.variables.logic.types import same


def labels_of(forms: Sequence[Form]) -> list[str]:
    """What each form is called beside the others."""
    names = [_label(form) for form in forms]
    times = Counter(names)
    return [
        f"({name})" if times[name] == 1 else f"({name} {number})"
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


def candidates(forms: Mapping[str, Form], value: Json, models: Mapping[str, Form]) -> Sequence[str]:
    """Which of several forms a value can have, by label; if none, the one that it was meant as."""
    fitting = [label for label, form in forms.items() if _Look(models).at(form, value)]
    loosely = _Look(models, loose=True)
    near = fitting or [label for label, form in forms.items() if loosely.at(form, value)]
    return near if fitting or len(near) == 1 else ()


class _Look(NamedTuple):
    """A look at a value that does not go deeper; a loose one forgives all but wrong words."""

    models: Mapping[str, Form]
    loose: bool = False

    def at(self, form: Form, value: Json) -> bool:
        return any(self._at_one(each, value) for each in self._variants(form))

    def _variants(self, form: Form) -> Iterator[Form]:
        """What a form comes to: neither a name nor a choice; each model is met once."""
        waiting, met = [form], set[str]()
        while waiting:
            match waiting.pop():
                case Reference(model=model):
                    waiting += () if model in met else (self.models[model],)
                    met.add(model)
                case Either(variants=variants):
                    waiting += variants
                case other:
                    yield other

    def _at_one(self, form: Form, value: Json) -> bool:
        kind = kind_of(value)
        match form:
            case Plain(type=type):
                return type in ("any", kind) or _is_numeric(type, value)
            case OneOf(words=words):
                return any(same(word, value) for word in words)
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
            return all(isinstance(each, OneOf) for each in self._variants(form))
        return not isinstance(part, dict | list)


def _is_numeric(type: str, value: Json) -> bool:
    """Whether a number is of a type although it is written as one of the other: 5 and 5.0."""
    if kind_of(value) == "integer":
        return type == "number"
    return type == "integer" and isinstance(value, float) and value.is_integer()
