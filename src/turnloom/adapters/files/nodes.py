"""The tree that a text is read into, whatever its format, and the ways it can be refused."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from turnloom.kernel.values import Json, preview

MAX_BYTES = 4 * 1024 * 1024
MAX_DEPTH = 64
MAX_VALUES = 100_000


@dataclass(frozen=True, slots=True)
class Flaw:
    """Why one value is not JSON, and what to write instead."""

    message: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Scalar:
    """A single value; `text` is how it was written."""

    offset: int
    value: Json
    text: str
    flaw: Flaw | None = None


@dataclass(frozen=True, slots=True)
class Items:
    """A list."""

    offset: int
    items: "Sequence[Node]"
    flaw: Flaw | None = None


@dataclass(frozen=True, slots=True)
class Entries:
    """A mapping, with every entry that was written, also the double ones."""

    offset: int
    pairs: "Sequence[tuple[Node, Node]]"
    flaw: Flaw | None = None


Node = Scalar | Items | Entries


class Refused(Exception):
    """A text that gives no document at all."""

    def __init__(self, code: str, offset: int, message: str, remedy: str) -> None:
        super().__init__(message)
        self.code, self.offset, self.message, self.remedy = code, offset, message, remedy


def too_deep(offset: int) -> Refused:
    """The refusal of a value that is nested beyond the limit."""
    message = f"Values are nested more than {MAX_DEPTH} levels deep here."
    return Refused("W005", offset, message, "Make the structure flatter.")


def number(offset: int, text: str, read: Callable[[str], Json]) -> Scalar:
    """The node of a number, flawed when it cannot be written as JSON again."""
    try:
        value = read(text)
        repr(value)  # Python neither reads nor writes decimals of thousands of digits.
    except ValueError:
        flaw = Flaw(f"A number of {len(text)} digits is too long.", "Write it as a string.")
        return Scalar(offset, text, text, flaw)
    if isinstance(value, float) and not math.isfinite(value):
        message = f"{preview(text)} is not a finite number."
        return Scalar(offset, text, text, Flaw(message, "Write a finite number, or null."))
    return Scalar(offset, value, text)
