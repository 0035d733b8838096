"""Parse declaration files into documents with the line of each value."""

import json
import math
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
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

from turnloom.errors import Diagnostic
from turnloom.kernel.documents import DeclarationFile, Path, Place
from turnloom.kernel.values import Json, kind_of, preview, type_names

MAX_BYTES = 4 * 1024 * 1024
MAX_DEPTH = 64
MAX_VALUES = 50_000


@dataclass(frozen=True, slots=True)
class Flaw:
    """Why a value is not valid JSON, and what to write instead."""

    message: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Scalar:
    """A single value; `text` is its source."""

    offset: int
    value: Json
    text: str
    flaw: Flaw | None = None


@dataclass(frozen=True, slots=True)
class ListNode:
    """A list."""

    offset: int
    items: "Sequence[Node]"
    flaw: Flaw | None = None


@dataclass(frozen=True, slots=True)
class Entries:
    """A mapping with all its entries, including duplicate keys."""

    offset: int
    pairs: "Sequence[tuple[Node, Node]]"
    flaw: Flaw | None = None


Node = Scalar | ListNode | Entries


class UnreadableText(Exception):
    """A text that cannot be parsed into a document."""

    def __init__(self, code: str, offset: int, message: str, remedy: str) -> None:
        super().__init__(message)
        self.code, self.offset, self.message, self.remedy = code, offset, message, remedy


def too_deep(offset: int) -> UnreadableText:
    """The error for values nested beyond the limit."""
    message = f"Values are nested more than {MAX_DEPTH} levels deep here."
    return UnreadableText("W005", offset, message, "Flatten the structure.")


def too_many(offset: int) -> UnreadableText:
    """The error for more values than the limit."""
    message = f"The file expands to over {MAX_VALUES} values or {MAX_BYTES} characters."
    return UnreadableText("W005", offset, message, "Declare less, or use fewer aliases.")


def number(offset: int, text: str, read: Callable[[str], Json]) -> Scalar:
    """The node of a number, with a flaw if JSON cannot represent it."""
    try:
        value = read(text)
        repr(value)  # fails for thousands of digits, which Python refuses to convert
    except ValueError:
        flaw = Flaw(f"A number of {len(text)} digits is too long.", "Write it as a string.")
        return Scalar(offset, text, text, flaw)
    if isinstance(value, float) and not math.isfinite(value):
        message = f"{preview(text)} is not a finite number."
        return Scalar(offset, text, text, Flaw(message, "Write a finite number, or null."))
    return Scalar(offset, value, text)


# An unterminated string is a token too. Otherwise every quote would start a new search for its end.
_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?|[{}\[\]]|[^\s,:{}\[\]"]+', re.DOTALL)
_JSON_WORDS = {"null", "true", "false"}
_JSON_REMEDIES = {
    "property name": "Put keys into double quotes, and remove a comma after the last entry.",
    "trailing comma": "Remove the comma after the last entry.",
    "delimiter": "Add the missing character, or find a quote that ends too early.",
    "control character": "Write line breaks inside strings as \\n and tabs as \\t.",
    "escape": "Write a backslash as \\\\.",
    "Extra data": "Keep one value in the file.",
    "Unterminated": "Close the string with a double quote.",
}


def read_json(text: str) -> Node | None:
    """The tree of a JSON text, or None when the text is empty."""
    if not text.strip():
        return None
    _refuse_deep(text)
    try:
        json.loads(text, parse_int=str, parse_float=str)
    except json.JSONDecodeError as error:
        hints = (hint for words, hint in _JSON_REMEDIES.items() if words in error.msg)
        message, remedy = f"This is not valid JSON: {error.msg}.", "Fix the text here."
        raise UnreadableText("W002", error.pos, message, next(hints, remedy)) from None
    tokens = _TOKEN.finditer(text)
    return _node(tokens, next(tokens))


def _refuse_deep(text: str) -> None:
    """Refuse text that would make the parser and `_node` recurse too deep."""
    # Up to its first error, the parser reads these same tokens, so it never recurses deeper.
    depth = 0
    for token in _TOKEN.finditer(text):
        match token.group():
            case "[" | "{":
                depth += 1
            case "]" | "}":
                depth -= 1
            case _:
                continue
        if depth > MAX_DEPTH:
            raise too_deep(token.start())


def _node(tokens: Iterator[re.Match[str]], token: re.Match[str]) -> Node:
    """The node that begins with `token`, in a valid text."""
    text, offset = token.group(), token.start()
    if text == "[":
        return ListNode(offset, [_node(tokens, item) for item in _until("]", tokens)])
    if text == "{":
        keys = _until("}", tokens)
        return Entries(offset, [(_node(tokens, key), _node(tokens, next(tokens))) for key in keys])
    if text in _JSON_WORDS or text.startswith('"'):
        return Scalar(offset, json.loads(text), text)
    return number(offset, text, json.loads)


def _until(end: str, tokens: Iterator[re.Match[str]]) -> Iterator[re.Match[str]]:
    for token in tokens:
        if token.group() == end:
            return
        yield token


_OWN_TAGS = "tag:yaml.org,2002:"
_YAML_WORDS: dict[str, Json] = {
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
_YAML_REMEDIES = {
    "'\\t' that cannot start": "Indent with spaces, not with tabs.",
    "cannot start any token": "Quote a text that begins with this character.",
    "mapping values are not allowed": "Check the indentation, or quote a text that contains ': '.",
    "<block end>": "Indent siblings equally, and find a quote that ends too early.",
    "<document start>": "Indent siblings equally.",
    "escape": "Write a backslash in double quotes as \\\\, or use single quotes.",
    "end of stream": "Close the quote.",
    "control character": "Remove it, or write it as an escape in double quotes.",
}
# The parser also raises these for invalid escapes and version numbers.
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
    """The relevant data of a parser event. Standard YAML tags are shortened."""

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
    """One pass over the parser events of a text, with the anchors seen so far."""

    def __init__(self, text: str) -> None:
        self._events = _events(text)
        self._anchors: dict[str | None, Node] = {}
        self._values = 0
        self.offset = 0

    def root(self) -> Node | None:
        self._next()
        if self._next().kind is StreamEndEvent:
            return None
        first = self._next()
        node = self._node(first, 1)
        self._next()
        if self._next().kind is not StreamEndEvent:
            message = "A second YAML document begins here. A file holds one."
            remedy = "Remove the `---` between them, or split the file."
            raise UnreadableText("W002", self.offset, message, remedy)
        return None if first.plain and first.tag is None and first.text == "" else node

    def _next(self) -> _Event:
        event = next(self._events)
        self.offset = event.offset
        return event

    def _value(self, event: _Event, depth: int) -> Node:
        """The node of a value, which counts; a long text is refused without reading the rest."""
        self._values += 1
        if self._values > MAX_VALUES:
            raise too_many(event.offset)
        return self._node(event, depth)

    def _node(self, event: _Event, depth: int) -> Node:
        if event.kind is AliasEvent:
            return self._aliased(event)
        self._anchors.pop(event.anchor, None)
        node = _scalar(event) if event.kind is ScalarEvent else self._collection(event, depth)
        if event.anchor is not None:
            self._anchors[event.anchor] = node
        return node

    def _collection(self, event: _Event, depth: int) -> Node:
        if depth > MAX_DEPTH:
            raise too_deep(event.offset)
        if event.kind is SequenceStartEvent:
            items = [self._value(item, depth + 1) for item in self._until(SequenceEndEvent)]
            return ListNode(event.offset, items, _shape_flaw(event, "seq"))
        assert event.kind is MappingStartEvent, "a value begins with nothing else"
        pairs = [self._pair(key, depth + 1) for key in self._until(MappingEndEvent)]
        return Entries(event.offset, pairs, _shape_flaw(event, "map"))

    def _pair(self, event: _Event, depth: int) -> tuple[Node, Node]:
        key = self._node(event, depth)
        if event.plain and event.text == "<<":
            flaw = Flaw("The merge key '<<' is not supported.", "Write the merged entries out.")
            key = replace(key, flaw=flaw)
        return key, self._value(self._next(), depth)

    def _until(self, end: type[Event]) -> Iterator[_Event]:
        while (event := self._next()).kind is not end:
            yield event

    def _aliased(self, event: _Event) -> Node:
        """The value of an alias, at the alias's own position."""
        name = event.anchor
        if name not in self._anchors:
            message = f"The alias {preview(name)} refers to no complete value above it."
            remedy = "Mark a value above with '&' and this name, or quote the text."
            raise UnreadableText("W002", event.offset, message, remedy)
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
    if text in _YAML_WORDS:
        return Scalar(offset, _YAML_WORDS[text], text)
    for pattern, read in _NUMBERS:
        if pattern.fullmatch(text):
            return number(offset, text, read)
    return Scalar(offset, text, text)


def is_plain(text: str) -> bool:
    """Whether YAML reads an unquoted text as itself: it is neither a keyword nor a number."""
    return _plain(0, text) == Scalar(0, text, text)


def _is(value: Json, tag: str) -> bool:
    return isinstance(value, _TYPES[tag]) and (tag == "bool") == isinstance(value, bool)


def _shape_flaw(event: _Event, own: str) -> Flaw | None:
    return None if event.tag in (None, "!", own) else _tag_flaw(event.tag)


def _tag_flaw(tag: str) -> Flaw:
    name = tag if tag.startswith("!") else f"!!{tag}"
    message = f"The tag {preview(name)} does not give a JSON value."
    return Flaw(message, "Remove the tag, or quote the text.")


def _refusal(error: Exception, offset: int) -> UnreadableText:
    """The error for a text that the parser cannot read, at its mark or after the last event."""
    problem, details = str(error), vars(error)
    if isinstance(error, MarkedYAMLError):
        problem = ", ".join(filter(None, (details["problem"], details["context"])))
        mark = details["problem_mark"] or details["context_mark"]
        offset = mark.index if mark else offset
    elif isinstance(error, ReaderError):
        problem = f"U+{details['character']:04X} is a control character or half of a surrogate pair"
        offset = details["position"]
    hints = (hint for words, hint in _YAML_REMEDIES.items() if words in problem)
    message = f"This is not valid YAML: {problem}."
    return UnreadableText("W002", offset, message, next(hints, "Fix the text here."))


_LINE_END = re.compile(r"\r\n?|\n")


def parse(file: str, text: str) -> tuple[DeclarationFile | None, list[Diagnostic]]:
    """The document of a JSON or YAML text, or None if it is unreadable, and all problems."""
    text = text.removeprefix("\ufeff")
    starts = [0, *(end.end() for end in _LINE_END.finditer(text))]
    try:
        _refuse_unfit(text)
        node = read_json(text) if file.endswith(".json") else read_yaml(text)
        expansion = _Expansion(file, starts)
        value = expansion.value(node or Entries(0, ()), ())
    except UnreadableText as refused:
        line = bisect_right(starts, refused.offset)
        return None, [Diagnostic(file, line, refused.code, refused.message, remedy=refused.remedy)]
    return DeclarationFile(file, value, text, expansion.places), sorted(set(expansion.problems))


def _refuse_unfit(text: str) -> None:
    if len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        message = f"The file is larger than {MAX_BYTES // 1024 // 1024} MiB."
        raise UnreadableText("W005", 0, message, "Move other content out of it.")
    if (offset := text.find("\0")) >= 0:
        raise UnreadableText(
            "W001", offset, "The file contains a NUL character.", "Save it as UTF-8 text."
        )


class _Expansion:
    """One walk over a tree that collects values, places and problems, and limits alias
    expansion."""

    def __init__(self, file: str, starts: list[int]) -> None:
        self._file, self._starts = file, starts
        self._values = self._characters = 0
        self.places: dict[Path, Place] = {}
        self.problems: list[Diagnostic] = []

    def value(self, node: Node, path: Path) -> Json:
        """The JSON value of a node. A flawed node keeps its text, so that parsing continues."""
        self.places.setdefault(path, self._place(node.offset))
        self._spend(node.offset, values=1)
        if node.flaw:
            self._report(node, node.flaw.message, node.flaw.remedy)
        if isinstance(node, Scalar):
            return self._text(node) if isinstance(node.value, str) else node.value
        if len(path) >= MAX_DEPTH:
            raise too_deep(node.offset)
        if isinstance(node, ListNode):
            return [self.value(item, (*path, index)) for index, item in enumerate(node.items)]
        return self._mapping(node, path)

    def _mapping(self, node: Entries, path: Path) -> dict[str, Json]:
        found: dict[str, Json] = {}
        for key, value in node.pairs:
            name = self._name(key)
            if name is None:
                continue
            at, place = (*path, name), self._place(key.offset)
            if name in found:
                lines = f"on line {self.places[at].line} and on line {place.line}"
                message = f"The key {preview(name)} is given twice, {lines}."
                self._report(key, message, "Remove one of the two.", "W003")
            else:
                self.places[at] = place
                found[name] = self.value(value, at)
        return found

    def _name(self, key: Node) -> str | None:
        """The name of a key; None if it is invalid."""
        if key.flaw:
            self._report(key, key.flaw.message, key.flaw.remedy)
            return None
        if not isinstance(key, Scalar):
            self._report(key, "A list or a mapping cannot be a key.", "Use a string as the key.")
            return None
        if isinstance(key.value, str):
            return self._text(key)
        kind = type_names.get(kind_of(key.value), "null")
        message = f"The key {preview(key.text)} is {kind}. Keys are strings."
        self._report(key, message, "Quote it.")
        return key.text

    def _text(self, node: Scalar) -> str:
        """The string of a node with surrogate pairs joined. A lone surrogate cannot be stored."""
        self._spend(node.offset, characters=len(node.value))
        raw = node.value.encode("utf-16", "surrogatepass")
        try:
            return raw.decode("utf-16")
        except UnicodeDecodeError:
            message = "The string contains half of a surrogate pair."
            self._report(node, message, "Write the whole character.")
            return raw.decode("utf-16", "replace")

    def _spend(self, offset: int, *, values: int = 0, characters: int = 0) -> None:
        self._values += values
        self._characters += characters
        if self._values > MAX_VALUES or self._characters > MAX_BYTES:
            raise too_many(offset)

    def _place(self, offset: int) -> Place:
        line = bisect_right(self._starts, offset)
        return Place(line, offset - self._starts[line - 1] + 1)

    def _report(self, node: Node, message: str, remedy: str, code: str = "W006") -> None:
        line = self._place(node.offset).line
        self.problems.append(Diagnostic(self._file, line, code, message, remedy=remedy))
