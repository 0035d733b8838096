"""Declared things: strict, frozen models, and how a document becomes one or a list of problems."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails

from turnloom.errors import Diagnostic, UsageError
from turnloom.kernel.documents import DeclarationFile, Path
from turnloom.kernel.values import as_array, as_object, kind_of, nearest, preview


class Declared(BaseModel):
    """Something a user writes down: unknown keys are refused, and nothing changes afterwards."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True)

    def __init__(self, /, *given: object, **values: object) -> None:
        name = type(self).__name__
        if given:
            raise UsageError(f"{name}({preview(given[0])}) says of no field what it is. Name it.")
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise UsageError(_refusal(type(self), values, error)) from None

    if not TYPE_CHECKING:  # checkers know by themselves that a frozen model does not change

        def __setattr__(self, name: str, value: object) -> None:
            raise UsageError(_FROZEN.format(type(self).__name__, name))

        def __delattr__(self, name: str) -> None:
            raise UsageError(_FROZEN.format(type(self).__name__, name))


# What pydantic validates inside of others is built without asking `__init__`.
Declared.__init__.__dict__.update(__pydantic_base_init__=True)

_FROZEN = "A {0} does not change: {1!r} cannot be set. Make another: `{0}(…)`."


M = TypeVar("M", bound=BaseModel)


class DocumentEntry(NamedTuple):
    """A part of a document: where it stands and what it says."""

    path: Path
    value: Any


class NamedEntries(NamedTuple):
    """Entries by name, and whether these are all names there are: a nameless one hides another."""

    entries: dict[str, DocumentEntry]
    complete: bool


@dataclass(slots=True)
class Report:
    """The problems found so far, in one document after the other."""

    folder: str
    problems: list[Diagnostic] = field(default_factory=list[Diagnostic])

    def add(
        self, document: DeclarationFile, path: Path, code: str, message: str, remedy: str = ""
    ) -> None:
        """Note a problem at a place."""
        self._note(document, path, code, message, remedy=remedy, severity="error")

    def warn(
        self, document: DeclarationFile, path: Path, code: str, message: str, remedy: str = ""
    ) -> None:
        """Note something that works but is probably not meant."""
        self._note(document, path, code, message, remedy=remedy, severity="warning")

    def _note(
        self,
        document: DeclarationFile,
        path: Path,
        code: str,
        message: str,
        remedy: str,
        severity: str,
    ) -> None:
        line = document.place(path).line
        problem = Diagnostic(document.file, line, code, message, remedy=remedy, severity=severity)
        if problem not in self.problems:
            self.problems.append(problem)

    def model(self, document: DeclarationFile, entry: DocumentEntry, model: type[M]) -> M | None:
        """The value at a place as a model, or nothing and a note of every problem with it."""
        try:
            return model.model_validate(entry.value)
        except ValidationError as error:
            for detail in error.errors(include_url=False):
                path, code, message, remedy = _explain(entry, detail, model)
                self.add(document, path, code, message, remedy=remedy)
            return None

    def unknown(self, document: DeclarationFile, path: Path, known: Sequence[str]) -> None:
        """Note a key that means nothing where it stands."""
        message, remedy = _unknown(str(path[-1]), known)
        self.add(document, path, "W010", message, remedy=remedy)

    def part(
        self, document: DeclarationFile, key: str, beside: Collection[str] = ()
    ) -> DocumentEntry:
        """The entry under a key that may be left out; if not, only keys of `beside` stand by it."""
        value = as_object(document.value)
        if value is None or key not in value:
            return DocumentEntry((), document.value)
        for other in value:
            if other != key and other not in beside:
                self.unknown(document, (other,), (key,))
        return DocumentEntry((key,), value[key])

    def named(self, document: DeclarationFile, entry: DocumentEntry, what: str) -> NamedEntries:
        """The entries of a mapping by key, or of a list by their `name`."""
        if entry.value is None:
            return NamedEntries({}, True)
        if (mapping := as_object(entry.value)) is not None:
            return NamedEntries(self._mapping(document, entry.path, mapping, what), True)
        if (items := as_array(entry.value)) is not None:
            return self._list(document, entry.path, items, what)
        message = f"{what}s must be an object or an array, not {preview(entry.value)}."
        self.add(document, entry.path, "W012", message, remedy="Write one entry per name.")
        return NamedEntries({}, False)

    def _mapping(
        self, document: DeclarationFile, path: Path, mapping: Mapping[str, Any], what: str
    ) -> dict[str, DocumentEntry]:
        found: dict[str, DocumentEntry] = {}
        for name, item in mapping.items():
            value, where = as_object(item), (*path, name)
            if value is None:
                found[name] = DocumentEntry(where, item)
                continue
            given = value.get("name", name)
            if given != name:
                message = f"{what} {name!r} calls itself {preview(given)}."
                remedy = "Use one name, or leave `name` out."
                self.add(document, (*where, "name"), "W012", message, remedy=remedy)
            found[name] = DocumentEntry(where, {**value, "name": name})
        return found

    def _list(
        self, document: DeclarationFile, path: Path, items: Sequence[Any], what: str
    ) -> NamedEntries:
        found: dict[str, DocumentEntry] = {}
        complete = True
        for index, item in enumerate(items):
            name = (as_object(item) or {}).get("name")
            where = (*path, index)
            if not isinstance(name, str) or not name:
                complete = False
                self.add(document, where, "W011", f"{what} has no `name`.", remedy="Give it one.")
            elif name in found:
                first = document.place(found[name].path).line
                message = f"{what} {name!r} is declared twice, first in line {first}."
                self.add(
                    document, where, "W013", message, remedy="Rename one of them or remove it."
                )
            else:
                found[name] = DocumentEntry(where, item)
        return NamedEntries(found, complete)


def _refusal(model: type[BaseModel], values: Mapping[str, Any], error: ValidationError) -> str:
    """Why no model can be made of these values, every reason in a sentence."""
    said = list[str]()
    for detail in error.errors(include_url=False):
        path, _, message, remedy = _explain(DocumentEntry((), values), detail, model)
        whole = detail["type"] == "value_error"  # which does not name its key
        inside = ".".join(map(str, path if whole else path[:-1]))
        said.append(f"{f'In {inside}: ' if inside else ''}{message} {remedy}".rstrip())
    return f"{model.__name__} cannot be made so. {' '.join(dict.fromkeys(said))}"


# What a value must be, by the kind of pydantic's complaint.
_EXPECTED = {
    **dict.fromkeys(("tuple_type", "list_type", "set_type", "frozen_set_type"), "a list"),
    **dict.fromkeys(("is_instance_of", "sequence_str"), "a list"),
    "dict_type": "an object",
    "string_type": "a text",
    "int_type": "a whole number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "callable_type": "a function",
}

# Where a value must lie, by the kind of complaint, with what bounds it.
_BOUNDS = {
    "greater_than": "above {gt}",
    "greater_than_equal": "{ge} or more",
    "less_than": "below {lt}",
    "less_than_equal": "{le} or less",
    "too_short": "at least {min_length} long",
    "too_long": "at most {max_length} long",
    "string_too_short": "at least {min_length} character long",
    "string_too_long": "at most {max_length} characters long",
}


def _explain(
    entry: DocumentEntry, detail: ErrorDetails, model: type[BaseModel]
) -> tuple[Path, str, str, str]:
    """One validation error in our words, at the place it is about."""
    path = (*entry.path, *_place_of(entry.value, _untagged(model, detail["loc"])))
    name, given = _subject(path), preview(detail["input"])
    match detail["type"]:
        case "extra_forbidden":
            known = _keys_at(model, detail["loc"][:-1])
            return path, "W010", *_unknown(str(path[-1]), known)
        case "missing":
            missing = str(detail["loc"][-1])
            return path, "W011", f"Key {missing!r} is missing.", "Add it."
        case "union_tag_invalid" | "union_tag_not_found":
            return _about_tag(path, detail)
        case "model_type" | "model_attributes_type":
            message = f"{name} must be an object, not {given}."
            return path, "W012", message, "Write its keys below it."
        case "literal_error" | "enum":
            allowed = str(detail.get("ctx", {}).get("expected", ""))
            words = [word.strip().strip("'") for word in allowed.replace(" or ", ", ").split(",")]
            word = detail["input"]
            hint = nearest(word, words) if isinstance(word, str) else None
            remedy = f"Did you mean {hint!r}?" if hint else "Use an allowed value."
            return path, "W012", f"{name} is {given}; allowed: {allowed}.", remedy
        case "value_error":
            return path, "W012", str(detail["ctx"]["error"]), ""  # pyright: ignore[reportTypedDictNotRequiredAccess]
        case _:
            return path, "W012", *_about_value(name, given, detail)


def _about_value(name: str, given: str, detail: ErrorDetails) -> tuple[str, str]:
    """What a value must be, or where it must lie, and what to do."""
    wrong, kind = detail["type"], kind_of(detail["input"])
    if wrong in _BOUNDS:
        must = _BOUNDS[wrong].format(**detail.get("ctx", {}))
        return f"{name} is {given}; it must be {must}.", "Correct the value."
    if wrong not in _EXPECTED:
        return f"{name} is {given} ({kind}): {detail['msg'].lower()}.", "Correct the value."
    expected = _EXPECTED[wrong]
    remedy = _REMEDIES.get(expected, "Correct the value.")
    return f"{name} must be {expected}, not {given} ({kind}).", remedy


_REMEDIES = {
    "a list": "Write its entries in brackets, or leave the key out.",
    "an object": "Write its keys below it, or leave the key out.",
}


def _subject(path: Path) -> str:
    """What stands at a path, as the beginning of a sentence."""
    match path[-1:]:
        case (int(index),):
            return f"Entry {index + 1}"
        case (key,):
            return repr(key)
        case _:
            return "This file"


def _unknown(key: str, known: Sequence[str]) -> tuple[str, str]:
    hint = nearest(key, known)
    remedy = f"Did you mean {hint!r}?" if hint else f"Known: {', '.join(known)}."
    return f"Key {key!r} is not known here.", remedy


def _about_tag(path: Path, detail: ErrorDetails) -> tuple[Path, str, str, str]:
    context: Mapping[str, Any] = detail.get("ctx", {})
    if detail["type"] == "union_tag_not_found":
        return path, "W011", "Key 'type' is missing.", "Say which type this is."
    given, allowed = str(context["tag"]), str(context["expected_tags"])
    hint = nearest(given, [word.strip().strip("'") for word in allowed.split(",")])
    remedy = f"Did you mean {hint!r}?" if hint else "Use one of these."
    return (*path, "type"), "W012", f"Type {given!r} does not exist; there is {allowed}.", remedy


def _untagged(model: type[BaseModel], loc: tuple[str | int, ...]) -> Path:
    """A validation location without the tags that say which model of several was meant."""
    schema: Any = model.model_json_schema()
    node, path = schema, list[str | int]()
    for step in loc:
        node = _resolve(node, schema.get("$defs", {}))
        if step not in node.get("discriminator", {}).get("mapping", {}):
            path.append(step)
        node = _child(node, step) or node
    return tuple(path)


def _place_of(value: Any, loc: tuple[str | int, ...]) -> Path:
    """The part of a validation location that exists in the document (names of models do not)."""
    path: list[str | int] = []
    for step in loc:
        mapping, items = as_object(value), as_array(value)
        if mapping is not None and step in mapping:
            value = cast(Mapping[Any, Any], mapping)[step]
        elif items is not None and isinstance(step, int) and step < len(items):
            value = items[step]
        else:
            continue
        path.append(step)
    return tuple(path)


def _keys_at(model: type[BaseModel], loc: tuple[str | int, ...]) -> list[str]:
    """The keys that the model at a validation location has."""
    schema: Any = model.model_json_schema()
    node, definitions = schema, schema.get("$defs", {})
    for step in loc:
        node = _child(_resolve(node, definitions), step) or node
    return list(_resolve(node, definitions).get("properties", {}))


# What may stand in place of an object: nothing, or a text that is read into one.
_ASIDE = ("null", "string")


def _resolve(node: Any, definitions: Mapping[str, Any]) -> Any:
    """The schema that a node stands for: references followed, `null` and short forms left aside."""
    options = [each for each in node.get("anyOf", ()) if each.get("type") not in _ASIDE]
    if len(options) == 1:
        return _resolve(options[0], definitions)
    if "$ref" in node:
        return _resolve(definitions[node["$ref"].rsplit("/", 1)[-1]], definitions)
    return node


def _child(node: Any, step: str | int) -> Any:
    if isinstance(step, int):
        return node.get("items")
    if step in node.get("properties", {}):
        return node["properties"][step]
    mapping = node.get("discriminator", {}).get("mapping", {})
    if step in mapping:
        return {"$ref": mapping[step]}
    return as_object(node.get("additionalProperties"))
