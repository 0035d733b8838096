"""Secrets: kept in the run's memory, masked in everything that is written."""

import json
import re
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Any, TypeVar, cast, get_args
from urllib.parse import quote, quote_plus

import msgspec

from turnloom.kernel.marks import BEGIN, Mark, mark, neutral
from turnloom.kernel.values import Json, as_array, as_data, as_object, preview
from turnloom.log.spec import Fact

# Shorter texts are not searched inside other texts: they would match by chance.
SHORTEST = 4

# Minimum length of the context-independent part of a secret's base64 form.
CORE = 6

# Minimum length of a secret's prefix that is searched at the end of a truncated text.
PIECE = 8

QUOTES = "\"'"

# The end of our previews of long values.
CUT = "…"

# Fields that name declared things or people, or are digests. A secret in one of them is a
# coincidence, and the run needs the field unmasked.
NAMES = frozenset(
    (
        "workflow workflow_version definition root files code changed_code tenant user by author "
        "to agent tool name names source target writer timer question waiting_for status kind "
        "origin condition engine request digest view counter history segments hook function file "
        "trigger server call model picked drawn among component display schema id tools reader "
        "marks of"
    ).split()
)

# Further fields that name declared things; they never contain external text.
DECLARED = frozenset(
    (
        "run form set_aside subscription collection hook_type visibility step place strand undoes "
        "frame handler branch case fork path paths loop thread approval approver outcome cause "
        "chosen candidates excluded meant chance agents strategy instead_of level resource short"
    ).split()
)

T = TypeVar("T", bound=msgspec.Struct)
F = TypeVar("F", bound=Fact)


class Secrets:
    """The secret values of one run by name; `mark` returns the text written in place of one."""

    def __init__(self, values: Mapping[str, Json], mark: Callable[[str], str] = mark) -> None:
        self._values = {name: value for name, value in values.items() if value is not None}
        self._marks = {
            form: mark(name)
            for name, value in self._values.items()
            for text in _texts(value)
            for form in (*_forms(text), neutral(text))
            if len(form) >= SHORTEST
        }
        # Marks come first, so that a secret that is part of a mark does not break it.
        forms = [*map(mark, self._values), *sorted(self._marks, key=len, reverse=True)]
        self._find = re.compile("|".join(map(re.escape, forms)))
        self._longest = max(map(len, self._marks), default=0)
        # Prefixes to find a secret at the end of a truncated text.
        self._begun: dict[str, list[str]] = {}
        for form in self._marks:
            if len(form) > PIECE:
                self._begun.setdefault(form[:PIECE], []).append(form)
        # A lookahead, because one prefix may overlap another.
        self._begins = re.compile(f"(?=({'|'.join(map(re.escape, self._begun))}))")

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def __bool__(self) -> bool:
        return bool(self._values)

    @property
    def names(self) -> Iterable[str]:
        """The names of the secrets."""
        return self._values.keys()

    def items(self) -> Iterable[tuple[str, Json]]:
        """The names and their values."""
        return self._values.items()

    def masked(self, text: str) -> str:
        """A text with every secret replaced by its mark, including truncated ones."""
        if not self._values:
            return text
        text = self._find.sub(lambda found: self._marks.get(found[0], found[0]), text)
        if CUT not in text or not self._begun:
            return text
        *cut, rest = text.split(CUT)
        ends = [self._end_masked(each) if len(each) >= PIECE else each for each in cut]
        return CUT.join([*ends, rest])

    def stands_in(self, name: str) -> bool:
        """Whether a name contains a secret; names are written unmasked."""
        return self.masked(name) != name

    def received(self, text: str) -> str:
        """An external text, masked; imitations of marks are neutralised."""
        return self.masked(neutral(text))

    def received_data(self, value: Json) -> Json:
        """An external value, masked; imitations of marks are neutralised."""
        return self.masked_data(neutral(value))

    def _end_masked(self, text: str) -> str:
        """A truncated text with the prefix of a secret at its end masked."""
        for found in self._begins.finditer(text, max(0, len(text) - self._longest)):
            rest = text[found.start() :]
            for form in self._begun[found[1]]:
                if form.startswith(rest):
                    return text[: found.start()] + self._marks[form]
        return text

    def mask(self, fact: T) -> T:
        """A fact with every secret replaced by its mark."""
        said = {name: getattr(fact, name) for name in fact.__struct_fields__ if name not in NAMES}
        data = _taking_json(type(fact))
        masked = {name: self._mask(value, name in data) for name, value in said.items()}
        return fact if masked == said else msgspec.structs.replace(fact, **masked)

    def masked_data(self, value: Json) -> Json:
        """A value with every secret replaced by its mark."""
        return self._mask(value) if self._values else value

    def _mask(self, value: Any, is_data: bool = True) -> Any:
        """A masked value; numbers are masked only in data, not in our own counts."""
        if isinstance(value, str):
            return self.masked(value)
        if isinstance(value, msgspec.Struct):
            return self.mask(value)
        if isinstance(value, tuple | frozenset):
            items = cast(tuple[Any, ...], value)
            return type(items)(map(self._mask, items))
        if (mapping := as_object(value)) is not None:
            return {self.masked(key): self._mask(each) for key, each in mapping.items()}
        if (items := as_array(value)) is not None:
            return [self._mask(each) for each in items]
        if is_data and isinstance(value, int | float) and not isinstance(value, bool):
            return self._marks.get(preview(value), value)
        return value

    def marks_in(self, text: str) -> tuple[Mark, ...]:
        """The positions of marks in a text to record."""
        if BEGIN not in text:
            return ()
        found = (
            Mark(name, place.start())
            for name in self._values
            for place in re.finditer(re.escape(mark(name)), text)
        )
        return tuple(sorted(found, key=lambda each: each.start))

    def opened_text(
        self, text: str, marks: Sequence[Mark], names: Collection[str], *, is_json: bool
    ) -> str:
        """A recorded text or JSON with the named secrets inserted at their marks."""
        for each in reversed(marks):
            if each.secret in names and each.secret in self._values:
                text = _put_at(text, each, self._values[each.secret], is_json=is_json)
        return text

    def opened(self, value: Json, names: Iterable[str]) -> Json:
        """A recorded value with the named secrets inserted."""
        for name in names:
            if name in self._values:
                value = _put_in(value, mark(name), self._values[name])
        return value


# Kinds of facts known to have no field for external text: a shortcut for code that checks every
# fact.
PLAIN: set[type[Fact]] = set()


# Shared by most runs, because patterns are expensive to compile.
NO_SECRETS = Secrets({})


def secrets_of(values: Mapping[str, Json]) -> Secrets:
    """The secrets of a run, by name."""
    return Secrets(values) if values else NO_SECRETS


def received_fact(fact: F) -> F:
    """A fact in which imitations of marks in external text are neutralised."""
    kind = fact.__class__
    if (outside := _OUTSIDE.get(kind)) is None:
        outside = _OUTSIDE[kind] = _from_outside(kind)
        if not outside:
            PLAIN.add(kind)
    for name in outside:
        value = getattr(fact, name)
        if value and (BEGIN in value if value.__class__ is str else neutral(value) is not value):
            changed = {each: neutral(getattr(fact, each)) for each in outside}
            return msgspec.structs.replace(fact, **changed)
    return fact


_OUTSIDE: dict[type[Fact], tuple[str, ...]] = {}


def _from_outside(kind: type[Fact]) -> tuple[str, ...]:
    """The fields of a fact that may contain external text."""
    known = NAMES | DECLARED | kind.recorded
    fields = msgspec.structs.fields(kind)
    return tuple(f.name for f in fields if f.name not in known and _may_hold_text(f.type))


def _may_hold_text(kind: Any) -> bool:
    if parts := get_args(kind):
        return any(map(_may_hold_text, parts))
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return any(_may_hold_text(field.type) for field in msgspec.structs.fields(kind))
    return kind not in _NUMBERS


_NUMBERS = (int, float, bool, datetime, None, type(None), Ellipsis)


@cache
def _taking_json(kind: type[msgspec.Struct]) -> frozenset[str]:
    """The fields that accept any JSON."""
    return frozenset(field.name for field in msgspec.structs.fields(kind) if field.type is Any)


def _put_at(text: str, place: Mark, secret: Json, *, is_json: bool) -> str:
    """A text with a secret in place of its mark: as data if the mark is a whole JSON string,
    otherwise as part of the text, if the secret is a text."""
    written = mark(place.secret)
    start, end = place.start, place.start + len(written)
    if text[start:end] != written:
        return text
    is_key = text[end : end + 2] == '":'
    if text[start - 1 : start] == text[end : end + 1] == '"' and (
        isinstance(secret, str) or not is_key
    ):
        return f"{text[: start - 1]}{as_data(secret)}{text[end + 1 :]}"
    if not isinstance(secret, str):
        return text
    return f"{text[:start]}{as_data(secret)[1:-1] if is_json else secret}{text[end:]}"


def _put_in(value: Json, mark: str, secret: Json) -> Json:
    if isinstance(value, str):
        return secret if value == mark else _text_with(value, mark, secret)
    if (mapping := as_object(value)) is not None:
        return {
            _text_with(key, mark, secret): _put_in(each, mark, secret)
            for key, each in mapping.items()
        }
    if (items := as_array(value)) is not None:
        return [_put_in(each, mark, secret) for each in items]
    return value


def _text_with(text: str, mark: str, secret: Json) -> str:
    return text.replace(mark, secret) if isinstance(secret, str) else text


def _forms(text: str) -> Iterable[str]:
    """The forms of a secret in other texts: plain, as data or repr, nested, and as in URLs and
    headers."""
    written = [text, *_written(text)]
    twice = [form for once in written for form in _written(once)]
    return dict.fromkeys([*written, *twice, *_encoded(text), text.upper(), text.lower()])


def _encoded(text: str) -> Iterable[str]:
    """A text in the encodings that appear in errors of clients and servers."""
    data = text.encode("utf-8", "surrogatepass")
    for percent in (quote(data, safe=""), quote(data), quote_plus(data)):
        yield percent
        yield re.sub("%..", lambda code: code[0].lower(), percent)
    yield data.hex()
    yield data.hex().upper()
    yield repr(data)[2:-1]
    for ahead in range(3):
        for encode in (b64encode, urlsafe_b64encode):
            core = _core(encode(bytes(ahead) + data).decode(), ahead, len(data))
            if len(core) >= CORE:
                yield core


def _core(encoded: str, ahead: int, length: int) -> str:
    """The part of base64 that does not depend on the bytes before and after."""
    return encoded[-(-ahead * 8 // 6) : (ahead + length) * 8 // 6]


def _written(text: str) -> Iterable[str]:
    """A text inside JSON, also ASCII-only, and inside `repr`, which depends on the quotes."""
    yield as_data(text)[1:-1]
    yield json.dumps(text)[1:-1]
    yield repr(text)[1:-1]
    yield repr(f"{QUOTES}{text}")[len(repr(QUOTES)) - 1 : -1]


def _texts(value: Json) -> Iterable[str]:
    """Every text inside a value."""
    if isinstance(value, str):
        yield value
    elif (mapping := as_object(value)) is not None:
        for each in mapping.values():
            yield from _texts(each)
    elif (items := as_array(value)) is not None:
        for each in items:
            yield from _texts(each)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield str(value)
