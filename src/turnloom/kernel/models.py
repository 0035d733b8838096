"""Strict, frozen models of declarations, and the diagnostics of documents that do not fit them."""

from collections.abc import Collection, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast, get_args

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator
from pydantic_core import ErrorDetails

from turnloom.errors import Diagnostic, UsageError
from turnloom.kernel.documents import DeclarationFile, Path
from turnloom.kernel.values import as_array, as_object, kind_of, nearest, preview


class Declared(BaseModel):
    """Base of everything a user declares: immutable, and strict about keys and types."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True)

    def __init__(self, /, *given: object, **values: object) -> None:
        name = type(self).__name__
        if given:
            raise UsageError(
                f"{name} takes keywords only, got {preview(given[0])}. Name the field."
            )
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise UsageError(_refusal(type(self), values, error)) from None

    @model_validator(mode="before")
    @classmethod
    def _leaves_nulls_out(cls, given: Any) -> Any:
        """A null for a key that has another default is the same as no key."""
        value = as_object(given)
        if value is None or None not in value.values():
            return given
        return {key: each for key, each in value.items() if each is not None or cls._may_be(key)}

    @classmethod
    def _may_be(cls, key: str) -> bool:
        """Whether a null for this key says something, or has to be refused."""
        fields = cls.model_fields
        found = fields.get(key) or next((f for f in fields.values() if f.alias == key), None)
        if found is None or found.is_required() or found.default is None:
            return True
        return found.annotation is Any or type(None) in get_args(found.annotation)

    if not TYPE_CHECKING:  # type checkers know that a frozen model is immutable

        def __setattr__(self, name: str, value: object) -> None:
            raise UsageError(_FROZEN.format(type(self).__name__, name))

        def __delattr__(self, name: str) -> None:
            raise UsageError(_FROZEN.format(type(self).__name__, name))


# Lets pydantic build nested models without calling `__init__`.
Declared.__init__.__dict__.update(__pydantic_base_init__=True)

_FROZEN = "{0} is immutable: {1!r} cannot be set. Create a new `{0}(…)`."


M = TypeVar("M", bound=BaseModel)


class DocumentEntry(NamedTuple):
    """A part of a document: its path and its value."""

    path: Path
    value: Any


class NamedEntries(NamedTuple):
    """Entries by name, and whether the names are complete: an entry without one hides a name."""

    entries: dict[str, DocumentEntry]
    complete: bool


class _Repetition(NamedTuple):
    """A warning of several lines, and its number among the problems."""

    number: int
    lines: list[int]


@dataclass(slots=True)
class Report:
    """The problems found so far in the documents of a folder."""

    folder: str
    problems: list[Diagnostic] = field(default_factory=list[Diagnostic])
    _known: set[Diagnostic] = field(default_factory=set[Diagnostic])
    _foreign: dict[tuple[str, str], "_Repetition"] = field(
        default_factory=dict[tuple[str, str], "_Repetition"]
    )

    def add(
        self, document: DeclarationFile, path: Path, code: str, message: str, remedy: str = ""
    ) -> None:
        """Add an error at a path."""
        self._note(document, path, code, message, remedy=remedy, severity="error")

    def warn(
        self, document: DeclarationFile, path: Path, code: str, message: str, remedy: str = ""
    ) -> None:
        """Add a warning: it works, but is probably a mistake."""
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
        if problem not in self._known:
            self._known.add(problem)
            self.problems.append(problem)

    def model(self, document: DeclarationFile, entry: DocumentEntry, model: type[M]) -> M | None:
        """The value of an entry as a model, with every problem added; None if it cannot be read.

        Unknown keys do not hide the rest: it is read without them, or with the keys they were
        meant to be.
        """
        try:
            return model.model_validate(entry.value)
        except ValidationError as error:
            details = error.errors(include_url=False)
        unknown = [each for each in details if each["type"] == "extra_forbidden"]
        faults = [each for each in details if each not in unknown or _is_meant(each, model)]
        self._explain_all(document, entry, faults, model)
        if not unknown:
            return None
        known = DocumentEntry(entry.path, _without_unknown(entry.value, unknown, model))
        try:
            return model.model_validate(known.value)
        except ValidationError as error:
            # Only a value whose keys are all known is judged as a whole.
            whole = [e for e in error.errors(include_url=False) if e["type"] == "value_error"]
            self._explain_all(document, known, whole, model)
            return None

    def _explain_all(
        self,
        document: DeclarationFile,
        entry: DocumentEntry,
        details: Sequence[ErrorDetails],
        model: type[BaseModel],
    ) -> None:
        for detail in details:
            path, code, message, remedy = _explain(entry, detail, model)
            self.add(document, path, code, message, remedy=remedy)

    def unknown(self, document: DeclarationFile, path: Path, known: Sequence[str]) -> None:
        """Add an error for an unknown key."""
        message, remedy = _unknown(str(path[-1]), known)
        self.add(document, path, "W010", message, remedy=remedy)

    def foreign(
        self, document: DeclarationFile, entry: DocumentEntry, keys: Collection[str]
    ) -> DocumentEntry:
        """The entry without keys that another system reads, which are one warning of all entries of
        the document that have them; a switch that is off says nothing."""
        value = as_object(entry.value) or {}
        found = [key for key in value if key in keys]
        if not found:
            return entry
        if said := [key for key in found if is_said(value[key]) and value[key] is not False]:
            message = f"Only another system reads {' and '.join(map(repr, said))}; no effect here."
            self._repeat(document, document.place((*entry.path, said[0])).line, message)
        rest = {key: each for key, each in value.items() if key not in keys}
        return DocumentEntry(entry.path, rest)

    def _repeat(self, document: DeclarationFile, line: int, message: str) -> None:
        """Add a warning of a foreign key, or one more line to it."""
        first = _Repetition(len(self.problems), [])
        number, lines = self._foreign.setdefault((document.file, message), first)
        if line in lines:
            return
        lines.append(line)
        more, plural = ", ".join(map(str, lines[1:])), "s" if len(lines) > 2 else ""
        said = f"{message} Also at line{plural} {more}." if more else message
        remedy = "Keep it for that system, or remove it."
        problem = Diagnostic(
            document.file, lines[0], "W015", said, remedy=remedy, severity="warning"
        )
        self.problems[number : number + 1] = [problem]

    def part(
        self, document: DeclarationFile, key: str, beside: Collection[str] = ()
    ) -> DocumentEntry:
        """The entry under an optional top-level key, next to which only the keys in `beside` are
        allowed; the whole document if the key is missing."""
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
                message = f"{what} {name!r} has another name, {preview(given)}."
                remedy = "Use one name, or omit `name`."
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


def is_said(value: Any) -> bool:
    """Whether a value says something: it is neither null nor a collection of nulls."""
    mapping = as_object(value)
    parts = mapping.values() if mapping is not None else as_array(value)
    return value is not None if parts is None else any(map(is_said, parts))


def readable(value: Any, model: type[M]) -> M | None:
    """The part of a value that can be read: its keys without faults, if these make a model."""
    mapping = as_object(value)
    for _ in range(2 if mapping is not None else 0):  # defaults may have faults of their own
        try:
            return model.model_validate(mapping)
        except ValidationError as error:
            faulty = {each["loc"][:1] for each in error.errors(include_url=False)}
            mapping = {key: each for key, each in (mapping or {}).items() if (key,) not in faulty}
    return None


def _is_meant(unknown: ErrorDetails, model: type[BaseModel]) -> bool:
    """Whether an unknown key is a mistake: it is not null, or almost a known one."""
    known = _keys_at(model, unknown["loc"][:-1])
    return unknown["input"] is not None or nearest(str(unknown["loc"][-1]), known) is not None


def _without_unknown(value: Any, unknown: Sequence[ErrorDetails], model: type[BaseModel]) -> Any:
    """A copy of a value whose unknown keys are renamed to the nearest missing ones, or removed."""
    copied = deepcopy(value)
    for detail in unknown:
        *path, key = _place_of(value, _untagged(model, detail["loc"]))
        parent: Any = copied
        for step in path:
            parent = parent[step]
        if key not in parent:
            continue
        meant, given = nearest(str(key), _keys_at(model, detail["loc"][:-1])), parent.pop(key)
        if meant is not None:
            parent.setdefault(meant, given)
    return copied


def _refusal(model: type[BaseModel], values: Mapping[str, Any], error: ValidationError) -> str:
    """Why the values do not make a valid model, one sentence for each problem."""
    said = list[str]()
    for detail in error.errors(include_url=False):
        path, _, message, remedy = _explain(DocumentEntry((), values), detail, model)
        whole = detail["type"] == "value_error"  # which does not name its key
        inside = ".".join(map(str, path if whole else path[:-1]))
        said.append(f"{f'In {inside}: ' if inside else ''}{message} {remedy}".rstrip())
    return f"Invalid {model.__name__}. {' '.join(dict.fromkeys(said))}"


# The expected kind of value, by pydantic's error type.
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

# The bounds of a value, by pydantic's error type.
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
    """The path, code, message and remedy of a validation error."""
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
    """The message and remedy for a value of the wrong kind or out of bounds."""
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
    """The subject of a message about the value at a path."""
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
    return f"Unknown key {key!r}.", remedy


def _about_tag(path: Path, detail: ErrorDetails) -> tuple[Path, str, str, str]:
    context: Mapping[str, Any] = detail.get("ctx", {})
    if detail["type"] == "union_tag_not_found":
        return path, "W011", "Key 'type' is missing.", "Add it."
    given, allowed = str(context["tag"]), str(context["expected_tags"])
    hint = nearest(given, [word.strip().strip("'") for word in allowed.split(",")])
    remedy = f"Did you mean {hint!r}?" if hint else "Use one of these."
    return (*path, "type"), "W012", f"Unknown type {given!r}; allowed: {allowed}.", remedy


def _untagged(model: type[BaseModel], loc: tuple[str | int, ...]) -> Path:
    """A validation location without the tags of discriminated unions."""
    schema: Any = model.model_json_schema()
    node, path = schema, list[str | int]()
    for step in loc:
        node = _resolve(node, schema.get("$defs", {}))
        if step not in node.get("discriminator", {}).get("mapping", {}):
            path.append(step)
        node = _child(node, step) or node
    return tuple(path)


def _place_of(value: Any, loc: tuple[str | int, ...]) -> Path:
    """The part of a validation location that exists in the document (model names do not)."""
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


# Alternatives to an object: null, or a short form as a string.
_ASIDE = ("null", "string")


def _resolve(node: Any, definitions: Mapping[str, Any]) -> Any:
    """The schema of a node: references followed, `null` and short forms ignored."""
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
