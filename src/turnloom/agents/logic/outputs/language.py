"""The field language of outputs: from a document to value types, or to all of its problems."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec

from turnloom.agents.logic.outputs.shipped import SCHEMA
from turnloom.agents.spec.outputs import (
    ArrayOf,
    Either,
    Key,
    MapOf,
    ObjectType,
    OneOf,
    Plain,
    Reference,
    ValueType,
)
from turnloom.kernel.documents import DeclarationFile, Path
from turnloom.kernel.models import DocumentEntry, NamedEntries, Report
from turnloom.kernel.values import Json, as_array, as_object, kind_of, nearest, preview
from turnloom.variables.logic.types import same


def labels_of(forms: Sequence[ValueType]) -> list[str]:
    """A unique label for each type of a union."""
    names = [_label(form) for form in forms]
    times = Counter(names)
    return [
        f"({name})" if times[name] == 1 else f"({name} {number})"
        for number, name in enumerate(names, 1)
    ]


def _label(form: ValueType) -> str:
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


def is_null(form: ValueType) -> bool:
    """Whether a type is null alone."""
    return isinstance(form, Plain) and form.type == "null"


def candidates(
    forms: Mapping[str, ValueType], value: Json, models: Mapping[str, ValueType]
) -> Sequence[str]:
    """The labels of the types that a value can have; if none, the one it was meant as."""
    fitting = [label for label, form in forms.items() if _Look(models).at(form, value)]
    loosely = _Look(models, loose=True)
    near = fitting or [label for label, form in forms.items() if loosely.at(form, value)]
    return near if fitting or len(near) == 1 else ()


class _Look(NamedTuple):
    """A shallow match of a value; a loose one forgives all but wrong literals."""

    models: Mapping[str, ValueType]
    loose: bool = False

    def at(self, form: ValueType, value: Json) -> bool:
        return any(self._at_one(each, value) for each in self._variants(form))

    def _variants(self, form: ValueType) -> Iterator[ValueType]:
        """The types behind references and unions; each model is visited once."""
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

    def _at_one(self, form: ValueType, value: Json) -> bool:
        kind = kind_of(value)
        match form:
            case Plain(type=type):
                return type in ("any", kind) or _is_numeric(type, value)
            case OneOf(words=words):
                return any(same(word, value) for word in words)
            case ObjectType(keys=keys):
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

    def _tells(self, form: ValueType, part: Json) -> bool:
        """Whether a part identifies the whole: a plain value, or a literal when loose."""
        if self.loose:
            return all(isinstance(each, OneOf) for each in self._variants(form))
        return not isinstance(part, dict | list)


def _is_numeric(type: str, value: Json) -> bool:
    """Whether a number matches a type in its other notation: 5 and 5.0."""
    if kind_of(value) == "integer":
        return type == "number"
    return type == "integer" and isinstance(value, float) and value.is_integer()


OPTIONAL = "optional_"
TYPES: Mapping[str, str] = {
    "str": "string",
    "int": "integer",
    "float": "number",
    "bool": "boolean",
    "dict": "object",
    "list": "array",
    "none": "null",
    **{
        word: word
        for word in ("string", "integer", "number", "boolean", "object", "array", "null")
        + ("any", "literal", "union", "model")
    },
}
_PARTS: Mapping[str, tuple[str, ...]] = {
    "array": ("items",),
    "literal": ("values", "literal", "enum"),
    "union": ("variants",),
    "object": ("fields", "values", "additional", "required"),
    "model": ("fields", "required"),
}
_LIST_FIELDS = "List the names of fields."
_ANY = Plain(type="any")
_NULL = Plain(type="null")


class Default(NamedTuple):
    """A default, its location, and its type."""

    path: Path
    form: ValueType
    value: Json


@dataclass
class FieldReader:
    """Reads value types; an invalid one is reported and becomes `any`.

    No field refers to a model of `whole`: these are schemas with their own references.
    """

    report: Report
    document: DeclarationFile
    models: Set[str]
    complete: bool
    whole: Set[str] = frozenset()
    defaults: list[Default] = field(default_factory=list[Default])

    def model(self, entry: DocumentEntry) -> ValueType:
        """The type of a model: an object with fields, a literal, or a union."""
        mapping = as_object(entry.value)
        if mapping is None:
            message = f"A model must be an object, not {preview(entry.value)}."
            return self._refuse(entry.path, message, "Write its `type` and its `fields`.")
        type, kinds = mapping.get("type"), ("model", "literal", "union", SCHEMA)
        if isinstance(type, str) and type not in kinds:
            hint = nearest(type, kinds)
            remedy = f"Did you mean {hint!r}?" if hint else "Use one of these."
            message = f"The type of a model must be one of {', '.join(kinds)}, not {type!r}."
            return self._refuse((*entry.path, "type"), message, remedy)
        return self._form(entry, ("name",))

    def _form(self, entry: DocumentEntry, more: Sequence[str] = ()) -> ValueType:
        """A type, given by its name or by an object with more options."""
        if isinstance(entry.value, str):
            return self._typed(entry.path, DocumentEntry(entry.path, {"type": entry.value}), more)
        mapping = as_object(entry.value)
        if mapping is None:
            message = f"A type must be a name or an object, not {preview(entry.value)}."
            return self._refuse(entry.path, message, "Write the name of a type or a model.")
        if not isinstance(mapping.get("type"), str):
            return self._untyped(entry, mapping.get("type"))
        return self._typed((*entry.path, "type"), entry, more)

    def _untyped(self, entry: DocumentEntry, given: Json) -> ValueType:
        remedy = "Add the name of a type."
        if given is None:
            return self._refuse(entry.path, "Key 'type' is missing.", remedy, "W011")
        message = f"'type' must be a name, not {preview(given)}."
        return self._refuse((*entry.path, "type"), message, remedy)

    def _typed(self, path: Path, entry: DocumentEntry, more: Sequence[str]) -> ValueType:
        mapping: dict[str, Any] = entry.value
        given: str = mapping["type"]
        word = given.removeprefix(OPTIONAL)
        type = TYPES.get(word, "")
        if not type and word not in self.models:
            return self._unknown_type(path, word)
        known = ("type", "description", *_PARTS.get(type, ()), *more)
        for key in mapping:
            if key not in known:
                self.report.unknown(self.document, (*entry.path, key), known)
        form = self._built(type, entry) if type else Reference(model=word)
        if word != given:
            form = either_null(form)
        return msgspec.structs.replace(form, description=self._description(entry))

    def _built(self, type: str, entry: DocumentEntry) -> ValueType:
        match type:
            case "array":
                return self._array(entry)
            case "object":
                return self._object(entry)
            case "model":
                return self._record(entry)
            case "literal":
                return self._literal(entry)
            case "union":
                return self._union(entry)
            case _:
                return Plain(type=type)

    def _unknown_type(self, path: Path, word: str) -> ValueType:
        if word in self.whole:
            message = f"{word!r} is a whole schema and cannot be used inside a model."
            return self._refuse(path, message, "Use a model with fields.", "W039")
        if self.complete:
            hint = nearest(word, [*TYPES, *sorted(self.models)])
            remedy = f"Did you mean {hint!r}?" if hint else "Declare it under `models`."
            self.report.add(
                self.document,
                path,
                "W039",
                f"{word!r} is neither a type nor a model.",
                remedy=remedy,
            )
        return _ANY

    def _description(self, entry: DocumentEntry) -> str:
        description = entry.value.get("description")
        if description is None or isinstance(description, str):
            return description or ""
        message = f"'description' must be a text, not {preview(description)}."
        self._refuse((*entry.path, "description"), message, "Write it in quotes.")
        return ""

    def _refuse(self, path: Path, message: str, remedy: str, code: str = "W012") -> ValueType:
        self.report.add(self.document, path, code, message, remedy=remedy)
        return _ANY

    def _part(self, entry: DocumentEntry, *keys: str) -> DocumentEntry | None:
        """The entry under one of several synonymous keys."""
        given = [key for key in keys if key in entry.value]
        for other in given[1:]:
            message = f"{given[0]!r} and {other!r} mean the same."
            self._refuse((*entry.path, other), message, "Keep one of them.")
        return DocumentEntry((*entry.path, given[0]), entry.value[given[0]]) if given else None

    def _array(self, entry: DocumentEntry) -> ValueType:
        part = self._part(entry, "items")
        return ArrayOf(item=self._form(part) if part else _ANY)

    def _object(self, entry: DocumentEntry) -> ValueType:
        if "fields" in entry.value:
            self._part(entry, "fields", "values", "additional")
            return self._record(entry)
        part = self._part(entry, "values", "additional")
        return MapOf(value=self._form(part) if part else _ANY)

    def _record(self, entry: DocumentEntry) -> ValueType:
        part = self._part(entry, "fields")
        if part is None or not part.value:
            return self._refuse(entry.path, "`fields` is missing or empty.", "Add a field.", "W011")
        named = self.report.named(self.document, part, "Field")
        listed = self._listed(entry, named)
        return ObjectType(
            keys={
                name: self._key(each, None if listed is None else name in listed)
                for name, each in named.entries.items()
            }
        )

    def _listed(self, entry: DocumentEntry, named: NamedEntries) -> Set[str] | None:
        """The required fields of a model, if it lists them; all others are optional."""
        names, path = entry.value.get("required"), (*entry.path, "required")
        # A field that is a model itself may say `required: true`: that is about the field.
        if names is None or isinstance(names, bool):
            return None
        items = as_array(names)
        if items is None:
            self._refuse(path, f"'required' must be a list, not {preview(names)}.", _LIST_FIELDS)
            return None
        for number, name in enumerate(items):
            if name not in named.entries and named.complete:
                hint = nearest(name, named.entries) if isinstance(name, str) else None
                remedy = f"Did you mean {hint!r}?" if hint else _LIST_FIELDS
                message = f"'required' lists {preview(name)}, which is not a field."
                self._refuse((*path, number), message, remedy)
        return {name for name in items if isinstance(name, str)}

    def _key(self, entry: DocumentEntry, listed: bool | None) -> Key:
        form = self._form(entry, ("name", "default", "required", "optional"))
        mapping = as_object(entry.value) or {}
        required = self._required(entry.path, mapping)
        required = listed if required is None else required
        if "default" not in mapping:
            form = either_null(form) if required is False else form
            return Key(form, not takes_null(form) if required is None else required)
        if required:
            message = "A required key cannot have a default."
            self._refuse((*entry.path, "default"), message, "Remove one of them.")
        default = Default((*entry.path, "default"), form, mapping["default"])
        self.defaults.append(default)
        return Key(form, False, default.value)

    def _required(self, path: Path, mapping: Mapping[str, Any]) -> bool | None:
        """Whether a key is required, if declared."""
        said: set[bool] = set()
        for key in ("required", "optional"):
            value = mapping.get(key)
            if key == "required" and isinstance(value, list):
                continue  # the fields of a model inside this one
            if isinstance(value, bool):
                said.add(value == (key == "required"))
            elif key in mapping:
                message = f"{key!r} must be true or false, not {preview(value)}."
                self._refuse((*path, key), message, "Use one of these.")
        if len(said) > 1:
            message = "'required' and 'optional' contradict each other."
            self._refuse((*path, "optional"), message, "Remove one of them.")
        return said.pop() if len(said) == 1 else None

    def _literal(self, entry: DocumentEntry) -> ValueType:
        part = self._part(entry, "values", "literal", "enum")
        words = as_array(part.value) if part else None
        if part is None or not words:
            return self._refuse(entry.path, "A literal needs `values`.", "Add them.", "W011")
        seen: dict[tuple[bool, Json], Json] = {}  # to Python, true is 1
        for number, word in enumerate(words):
            path = (*part.path, number)
            if isinstance(word, dict | list):
                message = f"A literal must be a plain value, not {preview(word)}."
                self._refuse(path, message, "Use a string or a number.")
            elif (isinstance(word, bool), word) in seen:
                self._refuse(path, f"{word!r} is given twice.", "Remove one of them.", "W013")
            else:
                seen[isinstance(word, bool), word] = word
        return OneOf(words=tuple(seen.values()))

    def _union(self, entry: DocumentEntry) -> ValueType:
        part = self._part(entry, "variants")
        variants = as_array(part.value) if part else None
        if part is None or not variants:
            return self._refuse(entry.path, "A union needs `variants`.", "Add them.", "W011")
        # YAML reads an unquoted `null` as None.
        entries = (
            DocumentEntry((*part.path, number), each) for number, each in enumerate(variants)
        )
        return Either(
            variants=tuple(_NULL if each.value is None else self._form(each) for each in entries)
        )


def either_null(form: ValueType) -> ValueType:
    """A type or null, with the description of the type."""
    if takes_null(form):
        return form
    bare = msgspec.structs.replace(form, description="")
    return Either(variants=(bare, _NULL), description=form.description)


def takes_null(form: ValueType) -> bool:
    """Whether a type explicitly allows null."""
    match form:
        case OneOf(words=words):
            return None in words
        case Either(variants=variants):
            return any(map(takes_null, variants))
        case _:
            return is_null(form)
