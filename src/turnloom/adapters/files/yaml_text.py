"""YAML text as nodes: a parser's events, read by the core schema of YAML 1.2, JSON values only."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import (
    AliasEvent,
    Event,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
)
from ruamel.yaml.reader import ReaderError

from turnloom.adapters.files.nodes import (
    MAX_DEPTH,
    Entries,
    Flaw,
    Items,
    Node,
    Refused,
    Scalar,
    number,
    too_deep,
)
from turnloom.kernel.values import Json, preview

_OWN_TAGS = "tag:yaml.org,2002:"
_WORDS: dict[str, Json] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_NUMBERS: tuple[tuple[re.Pattern[str], Callable[[str], Json]], ...] = (
    (re.compile(r"[-+]?[0-9]+"), int),
    (re.compile(r"0o[0-7]+"), lambda text: int(text[2:], 8)),
    (re.compile(r"0x[0-9a-fA-F]+"), lambda text: int(text[2:], 16)),
    (re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?"), float),
    (
        re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)"),
        lambda text: float(text.replace(".", "")),
    ),
)
_TYPES = {"null": type(None), "bool": bool, "int": int, "float": (int, float)}
_REMEDIES = {
    "'\\t' that cannot start": "Indent with spaces, not with tabs.",
    "cannot start any token": "Put a text that begins with this character into quotes.",
    "mapping values are not allowed": "Check the indentation, or quote a text that holds ': '.",
    "<block end>": "Indent neighbours alike, and look for a quote that ends too early.",
    "<document start>": "Indent neighbours alike.",
    "escape": "Write a backslash in double quotes as \\\\, or use single quotes.",
    "end of stream": "Close the quote.",
    "control character": "Remove it, or write it as an escape in double quotes.",
}
# What the parser lets through beside its own errors: impossible escapes and version numbers.
_PARSER_ERRORS = (YAMLError, ValueError, OverflowError, AssertionError)


def read_yaml(text: str) -> Node | None:
    """The tree of a YAML text, or None when the text is empty."""
    composition = _Composition(text)
    try:
        return composition.root()
    except _PARSER_ERRORS as error:
        raise _refusal(error, composition.offset) from None


@dataclass(frozen=True, slots=True)
class _Event:
    """One event of the parser, as far as it matters here; YAML's own tags are short."""

    kind: type[Event]
    offset: int
    anchor: str | None
    tag: str | None
    text: str
    plain: bool


def _events(text: str) -> Iterator[_Event]:
    loader: Any = YAML(typ="safe", pure=True, plug_ins=[])
    for raw in loader.parse(text):
        tag = getattr(raw, "tag", None)
        yield _Event(
            kind=raw.__class__,
            offset=raw.start_mark.index,
            anchor=getattr(raw, "anchor", None),
            tag=tag and tag.removeprefix(_OWN_TAGS),
            text=getattr(raw, "value", ""),
            plain=getattr(raw, "style", "") is None,
        )


class _Composition:
    """One pass over the events of a text, with the anchors met so far."""

    def __init__(self, text: str) -> None:
        self._events = _events(text)
        self._anchors: dict[str | None, Node] = {}
        self.offset = 0

    def root(self) -> Node | None:
        self._next()
        if self._next().kind is StreamEndEvent:
            return None
        first = self._next()
        node = self._node(first, 1)
        self._next()
        if self._next().kind is not StreamEndEvent:
            message = "A second YAML document begins here; a file holds one."
            remedy = "Remove the `---` between them, or split the file."
            raise Refused("W002", self.offset, message, remedy)
        return None if first.plain and first.tag is None and first.text == "" else node

    def _next(self) -> _Event:
        event = next(self._events)
        self.offset = event.offset
        return event

    def _node(self, event: _Event, depth: int) -> Node:
        if event.kind is AliasEvent:
            return self._anchored(event)
        self._anchors.pop(event.anchor, None)
        node = _scalar(event) if event.kind is ScalarEvent else self._collection(event, depth)
        if event.anchor is not None:
            self._anchors[event.anchor] = node
        return node

    def _collection(self, event: _Event, depth: int) -> Node:
        if depth > MAX_DEPTH:
            raise too_deep(event.offset)
        if event.kind is SequenceStartEvent:
            items = [self._node(item, depth + 1) for item in self._until(SequenceEndEvent)]
            return Items(event.offset, items, _shape_flaw(event, "seq"))
        assert event.kind is MappingStartEvent, "a value begins with nothing else"
        pairs = [self._pair(key, depth + 1) for key in self._until(MappingEndEvent)]
        return Entries(event.offset, pairs, _shape_flaw(event, "map"))

    def _pair(self, event: _Event, depth: int) -> tuple[Node, Node]:
        key = self._node(event, depth)
        if event.plain and event.text == "<<":
            flaw = Flaw("The merge key '<<' is not supported.", "Write the merged entries out.")
            key = replace(key, flaw=flaw)
        return key, self._node(self._next(), depth)

    def _until(self, end: type[Event]) -> Iterator[_Event]:
        while (event := self._next()).kind is not end:
            yield event

    def _anchored(self, event: _Event) -> Node:
        """The value that an alias stands for, placed where the alias stands."""
        name = event.anchor
        if name not in self._anchors:
            message = f"The alias {preview(name)} names nothing that is complete before it."
            remedy = "Mark a value above with '&' and this name, or put the text into quotes."
            raise Refused("W002", event.offset, message, remedy)
        return replace(self._anchors[name], offset=event.offset)


def _scalar(event: _Event) -> Scalar:
    tag, text = event.tag, event.text
    if tag in ("!", "str") or (tag is None and not event.plain):
        return Scalar(event.offset, text, text)
    node = _plain(event.offset, text)
    if tag is None or node.flaw or (tag in _TYPES and _is(node.value, tag)):
        return node
    return Scalar(event.offset, text, text, _tag_flaw(tag))


def _plain(offset: int, text: str) -> Scalar:
    """The node of an unquoted text, by the core schema."""
    if text in _WORDS:
        return Scalar(offset, _WORDS[text], text)
    for pattern, read in _NUMBERS:
        if pattern.fullmatch(text):
            return number(offset, text, read)
    return Scalar(offset, text, text)


def is_plain(text: str) -> bool:
    """Whether an unquoted text stands for itself: neither a word of YAML nor a number."""
    return _plain(0, text) == Scalar(0, text, text)


def _is(value: Json, tag: str) -> bool:
    return isinstance(value, _TYPES[tag]) and (tag == "bool") == isinstance(value, bool)


def _shape_flaw(event: _Event, own: str) -> Flaw | None:
    return None if event.tag in (None, "!", own) else _tag_flaw(event.tag)


def _tag_flaw(tag: str) -> Flaw:
    name = tag if tag.startswith("!") else f"!!{tag}"
    message = f"The tag {preview(name)} makes no JSON value of this."
    return Flaw(message, "Remove the tag, or put the text into quotes.")


def _refusal(error: Exception, offset: int) -> Refused:
    """What the parser could not read, where it says so, else after the last thing it read."""
    problem, details = str(error), vars(error)
    if isinstance(error, MarkedYAMLError):
        problem = ", ".join(filter(None, (details["problem"], details["context"])))
        mark = details["problem_mark"] or details["context_mark"]
        offset = mark.index if mark else offset
    elif isinstance(error, ReaderError):
        problem = f"U+{details['character']:04X} is a control character or half a character"
        offset = details["position"]
    hints = (hint for words, hint in _REMEDIES.items() if words in problem)
    message = f"This is not valid YAML: {problem}."
    return Refused("W002", offset, message, next(hints, "Correct the text here."))
