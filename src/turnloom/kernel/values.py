"""JSON values: their types, text, previews and nearest names."""

import json
import re
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard, cast

import msgspec

from turnloom.kernel.marks import neutral

# The name of each declared type in a message.
type_names = {
    "string": "a string",
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
    "object": "an object",
    "array": "an array",
}

# Characters that JSON does not escape but that break lines, change direction or are invisible.
_UNSEEN = re.compile(
    "[\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e0fff]"
)
_encode = msgspec.json.Encoder().encode
_encode_in_order = msgspec.json.Encoder(order="deterministic").encode

# Any JSON value. A recursive alias would be more exact, and cost every caller a cast.
Json = Any


def kind_of(value: Json) -> str:
    """The JSON type of a value, or its Python type name when it is not JSON."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case Mapping():
            return "object"
        case list() | tuple():
            return "array"
        case _:
            return type(cast(object, value)).__name__


def as_object(value: Json) -> dict[str, Any] | None:
    """The value as an object, if it is one."""
    return cast(dict[str, Any], value) if isinstance(value, dict) else None


def as_array(value: Json) -> list[Any] | None:
    """The value as an array, if it is one."""
    return cast(list[Any], value) if isinstance(value, list) else None


def is_text(value: object) -> TypeGuard[str]:
    """Whether a value is a plain string that can be encoded as UTF-8."""
    if type(value) is not str:
        return False
    if value.isascii():
        return True
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def is_name(value: object) -> TypeGuard[str]:
    """Whether a value is a valid name: a non-empty string that every store can hold."""
    if type(value) is not str or not value or "\0" in value:
        return False
    return value.isascii() or is_text(value)


def plain_string(value: object) -> object:
    """An instance of a subclass of `str` as a plain string; any other value unchanged."""
    return str.__str__(value) if isinstance(value, str) else value


def error_text(error: BaseException) -> str:
    """The message of an error, encodable as UTF-8 and without marks of secrets."""
    try:
        text = str(error)
    except Exception as failure:  # noqa: BLE001 - `__str__` of others may fail; the text says so
        text = f"its message cannot be read ({type(failure).__name__})"
    return neutral(writable(text))


def writable(text: str) -> str:
    """The text with lone surrogates escaped, so that it can be encoded as UTF-8."""
    return text.encode("utf-8", "backslashreplace").decode()


def fixed_text(text: Any, of: str) -> Any:
    """A declared text with lone surrogates escaped, with a warning."""
    if not isinstance(text, str) or is_text(text):
        return text
    given = writable(text)
    message = f"{of} has lone surrogates, which were escaped: {preview(given)}. Correct the text."
    warnings.warn(message, stacklevel=4)
    return given


def as_data(value: Json) -> str:
    """A value as JSON on one line, so that its line breaks and quotes cannot pass for ours."""
    return _spelled(_encode(value).decode())


def canonical(value: Json) -> str:
    """A value as JSON on one line with sorted keys: equal values give equal text."""
    return _spelled(_encode_in_order(value).decode())


def _spelled(text: str) -> str:
    """JSON with invisible and line-breaking characters escaped."""
    if text.isascii() and "\x7f" not in text:
        return text
    return _UNSEEN.sub(lambda found: json.dumps(found[0])[1:-1], text)


def preview(value: Json, limit: int = 80) -> str:
    """A short, one-line `repr` of a value for messages and logs."""
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 - too many digits, too deep, or code of others that fails
        text = f"<{kind_of(value)} that cannot be shown>"
    return writable(text if len(text) <= limit else f"{text[: limit - 1]}…")


def nearest(word: str, known: Sequence[str] | Mapping[str, object]) -> str | None:
    """The known word closest to a word, if it is close enough."""
    best: tuple[float, str] | None = None
    for candidate in known:
        score = _likeness(word.lower(), candidate.lower())
        if score >= 0.6 and (best is None or score > best[0]):
            best = (score, candidate)
    return best[1] if best else None


def _likeness(a: str, b: str) -> float:
    a, b = a[:64], b[:64]
    longest = max(len(a), len(b))
    return 1.0 if longest == 0 else 1 - _distance(a, b) / longest


def _distance(a: str, b: str) -> int:
    """Edits between two words, a swap of neighbours counting as one."""
    before: list[int] = []
    previous = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        current = [i]
        for j, y in enumerate(b, 1):
            cost = min(previous[j] + 1, current[j - 1] + 1, previous[j - 1] + (x != y))
            if i > 1 and j > 1 and x == b[j - 2] and a[i - 2] == y:
                cost = min(cost, before[j - 2] + 1)
            current.append(cost)
        before, previous = previous, current
    return previous[-1]
