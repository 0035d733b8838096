"""Dotted keys into documents, and whose a document is: the same in every database."""

from collections.abc import Iterable, Sequence

from turnloom.errors import UsageError
from turnloom.kernel.values import Json, as_object


def steps(key: str) -> tuple[str, ...]:
    """The names that a dotted key goes through.

    Raises:
        UsageError: the key is one that not every database can look up.
    """
    names = tuple(key.split("."))
    if not all(_is_name(name) for name in names):
        raise UsageError(
            f"Documents cannot be looked up by {key!r}. A key is made of names with dots between "
            "them, as in 'owner.email'; a name is not empty, does not begin with '$', and holds no "
            "double quote, backslash or control character."
        )
    return names


def value_at(document: Json, names: Sequence[str]) -> Json:
    """What stands in a document under these names, or null; objects are entered, arrays are not."""
    for name in names:
        inside = as_object(document)
        if inside is None:
            return None
        document = inside.get(name)
    return document


def belongs(document: Json, fields: Iterable[str], tenant: str) -> bool:
    """Whether each of these fields that a document has, if only as null, names the tenant."""
    return all(document[field] == tenant for field in fields if field in document)


def is_storable(text: str) -> bool:
    """Whether every database can hold this text; one that cannot be held is in no document."""
    return not any(mark == "\0" or "\ud800" <= mark <= "\udfff" for mark in text)


def _is_name(text: str) -> bool:
    if not text or text.startswith("$") or not is_storable(text):
        return False
    return not any(mark in '"\\\x7f' or mark < " " for mark in text)
