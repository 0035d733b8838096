"""Dotted keys into documents, and the tenant of a document: the same for every database."""

import re
from collections.abc import Iterable, Sequence

from turnloom.errors import UsageError
from turnloom.kernel.values import Json, as_object
from turnloom.variables.logic.types import same

# NUL, and halves of characters.
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")


def steps(key: str) -> tuple[str, ...]:
    """The names in a dotted key.

    Raises:
        UsageError: not every database can look up the key.
    """
    names = tuple(key.split("."))
    if not all(_is_name(name) for name in names):
        raise UsageError(
            f"Invalid document key {key!r}. Write names separated by dots, as in 'owner.email'; "
            "a name must not be empty, start with '$', or contain a double quote, backslash or "
            "control character."
        )
    return names


def value_at(document: Json, names: Sequence[str]) -> Json:
    """The value at a path of a document, or null; arrays are not entered."""
    for name in names:
        inside = as_object(document)
        if inside is None:
            return None
        document = inside.get(name)
    return document


def meets(document: Json, conditions: Iterable[tuple[str, Json]]) -> bool:
    """Whether a document has each of these values at its key.

    Raises:
        UsageError: not every database can look up a key.
    """
    return all(same(value_at(document, steps(key)), value) for key, value in conditions)


def belongs(document: Json, fields: Iterable[str], tenant: str) -> bool:
    """Whether all of these fields that a document has name the tenant; null counts as a value."""
    return all(document[field] == tenant for field in fields if field in document)


def is_storable(text: str) -> bool:
    """Whether every database can store this text."""
    return _UNSTORABLE.search(text) is None


def _is_name(text: str) -> bool:
    if not text or text.startswith("$") or not is_storable(text):
        return False
    return not any(mark in '"\\\x7f' or mark < " " for mark in text)
