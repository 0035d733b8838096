"""Texts in the facts of a run, and the search for one of them."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, cast

import msgspec

from turnloom.errors import UsageError
from turnloom.kernel.values import as_data
from turnloom.log.spec import Fact

# Shorter texts occur everywhere.
SHORTEST = 8

# Characters shown on both sides of a text.
AROUND = 30

# A mark of a secret, also one that was cut.
_MARK = re.compile(r"⟨secret:[^⟩]*(?:⟩|\Z)")
_SPACE = re.compile(r"(?:\\[nrt]|\s)+")
_QUOTE = re.compile(r"\\*[\"'`´‘’‚“”„«»]")

# Fields that hold what people, models, tools and code wrote.
CONTENT = frozenset(
    """
    added arguments artifact artifacts calls description files hint inputs instructions items
    message metadata option output payload pin prompt query raw reduced refusal result results said
    schema state states text tools update value values
    """.split()
)

# Fields of facts that repeat what other facts say.
_REPEATED = {"frame.assembled": {"segments"}, "context.changed": {"previous"}}


class TextMatch(NamedTuple):
    """An occurrence of a text: its field, whether it is exact, and some of the text around it."""

    where: str
    exact: bool
    excerpt: str


def fold(text: str) -> str:
    """A text with one space for all white space, and one kind of quotes; escapes of JSON count as
    what they stand for."""
    return _SPACE.sub(" ", _QUOTE.sub('"', text))


class TextSearch:
    """Searches for a text: exactly, then with white space and quotes folded. A secret that is
    masked never matches, nor does text on both sides of it.

    Raises:
        UsageError: the text is too short.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._folded = fold(text).strip()
        if len(self._folded) < SHORTEST:
            raise UsageError(
                f"{text!r} is too short: it may be anywhere. Give at least {SHORTEST} characters."
            )

    def find(self, text: str, where: str = "") -> TextMatch | None:
        """The first occurrence in a text."""
        parts = _MARK.split(text)
        for part in parts:
            if (at := part.find(self.text)) >= 0:
                return TextMatch(where, True, _excerpt(part, at, len(self.text)))
        for part in map(fold, parts):
            if (at := part.find(self._folded)) >= 0:
                return TextMatch(where, False, _excerpt(part, at, len(self._folded)))
        return None

    def find_in(self, fact: Fact) -> TextMatch | None:
        """The first occurrence in a fact, an exact one before others."""
        found: TextMatch | None = None
        for where, text in texts_in(fact):
            match = self.find(text, where)
            if match is not None and match.exact:
                return match
            found = found or match
        return found


def _excerpt(text: str, at: int, length: int) -> str:
    start, end = max(0, at - AROUND), at + length + AROUND
    return f"{'…' if start else ''}{text[start:end]}{'…' if end < len(text) else ''}"


def texts_in(fact: Fact) -> Iterator[tuple[str, str]]:
    """The texts of a fact that people, models, tools and code wrote, each with its field."""
    skipped = _REPEATED.get(fact.kind, frozenset[str]())
    for field in fact.__struct_fields__:
        if field in CONTENT and field not in skipped:
            yield from _texts(getattr(fact, field), field)


def _texts(value: Any, where: str) -> Iterator[tuple[str, str]]:
    match value:
        case str():
            yield where, value
        case msgspec.Struct():
            for field in value.__struct_fields__:
                if field in CONTENT:
                    yield from _texts(getattr(value, field), f"{where}.{field}")
        case Mapping():
            yield from _data(cast(Mapping[str, Any], value), where)
        case list() | tuple():
            yield from _listed(cast(Sequence[Any], value), where)
        case _:
            return


def _listed(values: Sequence[Any], where: str) -> Iterator[tuple[str, str]]:
    """Texts of structs by their names, or of data as it is and as JSON."""
    if where == "said":  # messages, which are tuples
        yield from ((f"{where}[{number}]", each.text) for number, each in enumerate(values))
    elif all(isinstance(each, msgspec.Struct) for each in values):
        for number, each in enumerate(values):
            yield from _texts(each, f"{where}.{_name(each) or number}")
    else:
        yield from _data(values, where)


def _name(value: Any) -> str:
    """The name of a struct in a list."""
    for field in ("name", "tool", "artifact", "source_id", "id"):
        if name := getattr(value, field, ""):
            return str(name)
    return ""


def _data(value: Any, where: str) -> Iterator[tuple[str, str]]:
    """Each string in data, then all of the data as JSON, as prompts show it."""
    left: list[tuple[str, Any]] = [(where, value)]
    while left:
        at, each = left.pop()
        match each:
            case str():
                yield at, each
            case Mapping():
                items = cast(Mapping[str, Any], each).items()
                left += [(f"{at}.{key}", inner) for key, inner in items]
            case list() | tuple():
                listed = cast(Sequence[Any], each)
                left += [(f"{at}[{number}]", inner) for number, inner in enumerate(listed)]
            case _:
                continue
    if where != "files":
        yield where, as_data(value)
