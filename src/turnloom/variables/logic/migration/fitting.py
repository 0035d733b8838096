"""Reconciliation of the types and values of older entries."""

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

from pydantic import ValidationError

from turnloom.kernel.documents import Path
from turnloom.kernel.models import readable
from turnloom.kernel.values import Json, as_array, kind_of, nearest, preview, type_names
from turnloom.variables.logic.migration.layout import Remarks, is_text
from turnloom.variables.logic.triggers import definition_model
from turnloom.variables.logic.types import coerce, misfit
from turnloom.variables.spec import VariableDefinition

# Free-text types by declared type.
_WORDS = {
    "string": ("str", "string", "text", "uuid", "id", "url", "date", "datetime", "enum"),
    "integer": ("int", "integer", "long"),
    "number": ("number", "numeric", "float", "double", "decimal"),
    "boolean": ("bool", "boolean", "flag"),
    "object": ("object", "dict", "dictionary", "map", "mapping"),
    "document": ("document",),
    "array": ("array", "list", "tuple", "set", "sequence"),
}
_TYPES = {word: declared for declared, words in _WORDS.items() for word in words}
_SILENT = ("optional", "null", "none")


@dataclass(slots=True)
class EntryDraft:
    """An entry during migration: its keys, its source, and the remarks so far.

    Migrated keys are removed from `body` and `source`; the rest has no counterpart. `kept` is the
    entry if it cannot be converted, `nested` the keys that were in its source. `faulty` has the
    triggers that stay as they are, and `origins` the paths that triggers had.
    """

    name: str
    kind: str
    body: dict[str, Any]
    source: dict[str, Any]
    kept: dict[str, Any]
    nested: frozenset[str]
    database: str | None
    remarks: Remarks
    faulty: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    origins: dict[Path, Path] = field(default_factory=dict[Path, Path])


class _Read(NamedTuple):
    """The meaning of a free-text type: a known type, or a fallback if no value determines it."""

    known: str | None = None
    loose: str | None = None


def fit(draft: EntryDraft, source: dict[str, Any]) -> dict[str, Any]:
    """The declaration of a variable without its source, with a type that matches its values."""
    word = draft.body.pop("type", None)
    key = "value" if source["type"] == "static" else "default"
    sample = source.get(key)
    declared = _type(draft, source, word, sample)
    if sample is not None and declared and misfit(probe(draft.name, declared), sample):
        declared, source[key] = _reconcile(draft, declared, sample, key)
    entry: dict[str, Any] = {"type": declared} if declared else {}
    entry.update(_described(draft, declared, source.get(key)))
    if is_misspelt(word):
        draft.remarks.left.append(f"Type {preview(word)} stays: it is misspelt.")
        entry["type"] = word
    return entry


def probe(name: str, declared: str | None, enum: Json = None) -> VariableDefinition:
    """A definition for validating values; without a type or an `enum` that is invalid."""
    plain = {"name": name, "source": {"type": "static", "value": None}}
    said = {**plain, "type": declared or None, "enum": enum}
    return readable(said, VariableDefinition) or VariableDefinition.model_validate(plain)


def accepted(name: str, entry: Json) -> VariableDefinition | None:
    """The entry as a current definition, if valid."""
    try:
        return definition_model().model_validate({**entry, "name": name})
    except ValidationError:
        return None


def is_free_text(word: Json) -> bool:
    """Whether a type is one of older formats, which are in free words."""
    if isinstance(word, str) and _is_current(word):
        return False
    return word is not None and _read(word) != _Read()


@lru_cache(64)
def _is_current(word: str) -> bool:
    return accepted("x", {"type": word, "source": {"type": "static", "value": None}}) is not None


def is_misspelt(word: Json) -> bool:
    """Whether a type is almost one of the known words."""
    return isinstance(word, str) and _read(word) == _Read() and nearest(word, _TYPES) is not None


def _type(draft: EntryDraft, source: dict[str, Any], word: Json, sample: Json) -> str:
    """The declared type; empty if a static variable has none."""
    read = _read(word)
    if read.known is not None:
        found = read.known
    elif sample is not None and (word is not None or source["type"] != "static"):
        found = kind_of(sample) if kind_of(sample) in type_names else "string"
    else:
        found = read.loose or _guess(draft, source)
    if word is None:
        if found:
            draft.remarks.assumed.append(f"It had no type; {found!r} is assumed.")
    elif read == _Read() and not is_misspelt(word):
        what = f"{found!r} is assumed" if found else "the type is dropped"
        draft.remarks.lost.append(f"Type {preview(word)} is unknown; {what}.")
    elif found != word and read != _Read():
        draft.remarks.assumed.append(f"Type {preview(word)} is now {found!r}.")
    return found


def _read(word: Json) -> _Read:
    """The meaning of a free-text type, including `list[str]`, `Optional[int]` and `["string",
    "null"]`."""
    text = " ".join(str(each) for each in as_array(word) or [word]).lower()
    words = [each for each in re.findall(r"[a-z]+", text) if each not in _SILENT]
    if not words:
        return _Read()
    return _Read(loose="object") if words[0] == "json" else _Read(known=_TYPES.get(words[0]))


def _guess(draft: EntryDraft, source: dict[str, Any]) -> str:
    """The type of a variable without a type or a value."""
    if source["type"] == "static":
        return ""
    if source["type"] == "file":
        return "string" if source.get("format", "text") == "text" else "object"
    values = [each.get("value", True) for each in source.get("triggers", ()) if "agent" in each]
    if values and kind_of(values[0]) in type_names:
        return kind_of(values[0])
    return "boolean" if source["type"] == "derived" and draft.kind == "flag" else "string"


def _reconcile(draft: EntryDraft, declared: str, sample: Json, key: str) -> tuple[str, Json]:
    """A matching type and value from two that do not match."""
    said = f"{preview(sample)} is not {type_names.get(declared, 'an object')}"
    if key == "value":
        found = kind_of(sample) if kind_of(sample) in type_names else ""
        draft.remarks.lost.append(f"Value {said}; the type is now {found or 'omitted'!r}.")
        return found, sample
    if declared == "integer" and isinstance(sample, float):
        draft.remarks.assumed.append(f"Default {said}; the type is now 'number'.")
        return "number", sample
    if declared == "object" and as_array(sample) is not None:  # any JSON was called an object
        draft.remarks.assumed.append(f"Default {said}; the type is now 'array'.")
        return "array", sample
    if isinstance(sample, str | int | float):
        text = sample if isinstance(sample, str) else str(sample).lower()
        coerced = coerce(probe(draft.name, declared), text)
        if not coerced.failed and not coerced.note:
            draft.remarks.assumed.append(f"Default {said}; it is now {coerced.value!r}.")
            return declared, coerced.value
    draft.remarks.left.append(f"Default {said}; both stay.")
    return declared, sample


def _described(draft: EntryDraft, declared: str, sample: Json) -> dict[str, Any]:
    """The other valid keys of a definition."""
    kept: dict[str, Any] = {}
    for key in ("description", "enum", "secret", "gate", "required", "max_chars"):
        value = draft.body.pop(key, None)
        if value is None:
            continue
        kept[key] = value
        if not _is_sound(draft.name, key, value, declared, sample=sample):
            draft.remarks.left.append(f"Key {key!r} stays with the invalid value {preview(value)}.")
    return kept


def _is_sound(name: str, key: str, value: Json, declared: str, sample: Json) -> bool:
    match key:
        case "description":
            return value == "" or is_text(value)
        case "enum":
            allowed = as_array(value)
            plain = probe(name, declared)
            if not allowed or any(misfit(plain, each) for each in allowed):
                return False
            return not misfit(probe(name, declared, allowed), sample)
        case "max_chars":
            return kind_of(value) == "integer" and value > 0
        case _:
            return isinstance(value, bool)
