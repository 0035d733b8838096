"""Secrets: known to the run's memory, and to nothing that is written."""

import json
import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, TypeVar, cast

import msgspec

from turnloom.kernel.values import Json, as_array, as_data, as_object, preview

# Shorter texts are not looked for inside other texts: they would stand there by chance.
SHORTEST = 4

# How much of a secret must stand at the end of a text that was cut off for it to be looked for.
PIECE = 8

QUOTES = "\"'"

# What our pictures of long values end with.
CUT = "…"

# Fields that name declared things and people, or stand for bytes that hold no value of a secret.
# A secret that is found in one stands there by chance, and the run would lose its way without it.
NAMES = frozenset(
    (
        "workflow workflow_version definition root files code changed_code tenant user by author "
        "to agent tool name names source target writer timer question waiting_for status kind "
        "origin condition engine request digest view counter history segments hook function file "
        "trigger server call model picked drawn among component display schema id tools reader"
    ).split()
)

T = TypeVar("T", bound=msgspec.Struct)


def mark(name: str) -> str:
    """What is written in place of a secret."""
    return f"⟨secret:{name}⟩"


class Secrets:
    """The secret values of one run by name."""

    def __init__(self, values: Mapping[str, Json]) -> None:
        self._values = {name: value for name, value in values.items() if value is not None}
        self._marks = {
            form: mark(name)
            for name, value in self._values.items()
            for text in _texts(value)
            for form in _forms(text)
            if len(form) >= SHORTEST
        }
        # Marks stand first, so that a secret that is part of a mark does not spoil it.
        forms = [*map(mark, self._values), *sorted(self._marks, key=len, reverse=True)]
        self._find = re.compile("|".join(map(re.escape, forms)))

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def __bool__(self) -> bool:
        return bool(self._values)

    @property
    def names(self) -> Iterable[str]:
        """What the secrets are called."""
        return self._values.keys()

    def items(self) -> Iterable[tuple[str, Json]]:
        """The names and their values."""
        return self._values.items()

    def masked(self, text: str) -> str:
        """A text with every secret in it replaced by its mark, also one that was cut off."""
        if not self._values:
            return text
        text = self._find.sub(lambda found: self._marks.get(found[0], found[0]), text)
        if CUT not in text or not self._marks:
            return text
        *cut, rest = text.split(CUT)
        return CUT.join([*map(self._end_masked, cut), rest])

    def received(self, text: str) -> str:
        """A text from outside, masked; what looks like a mark in it is none, and opens nothing."""
        for name in self._values:
            text = text.replace(mark(name), f"⟨secret {name}⟩")
        return self.masked(text)

    def _end_masked(self, text: str) -> str:
        """A text that was cut off, with the beginning of a secret at its end replaced."""
        for form, name in self._marks.items():
            for length in range(min(len(form) - 1, len(text)), PIECE - 1, -1):
                if text.endswith(form[:length]):
                    return text[:-length] + name
        return text

    def mask(self, fact: T) -> T:
        """A fact with every secret in it replaced by its mark."""
        said = {name: getattr(fact, name) for name in fact.__struct_fields__ if name not in NAMES}
        data = _taking_json(type(fact))
        masked = {name: self._mask(value, name in data) for name, value in said.items()}
        return fact if masked == said else msgspec.structs.replace(fact, **masked)

    def masked_data(self, value: Json) -> Json:
        """A value with every secret in it replaced by its mark."""
        return self._mask(value) if self._values else value

    def _mask(self, value: Any, is_data: bool = True) -> Any:
        """A value masked; a number only where it is data, not where it counts something of ours."""
        if isinstance(value, str):
            return self.masked(value)
        if isinstance(value, msgspec.Struct):
            return self.mask(value)
        if isinstance(value, tuple):
            return tuple(map(self._mask, cast(tuple[Any, ...], value)))
        if (mapping := as_object(value)) is not None:
            return {self.masked(key): self._mask(each) for key, each in mapping.items()}
        if (items := as_array(value)) is not None:
            return [self._mask(each) for each in items]
        if is_data and isinstance(value, int | float) and not isinstance(value, bool):
            return self._marks.get(preview(value), value)
        return value

    def reveal(self, text: str, names: Iterable[str]) -> str:
        """A prompt with the secrets of these names put in."""
        for name in names:
            if name in self._values:
                text = text.replace(as_data(mark(name)), as_data(self._values[name]))
        return text

    def reveal_within(self, text: str, names: Iterable[str]) -> str:
        """JSON in a prompt with the secrets of these names put in, also inside of its texts."""
        text = self.reveal(text, names)
        for name in names:
            if isinstance(value := self._values.get(name), str):
                text = text.replace(mark(name), as_data(value)[1:-1])
        return text

    def opened(self, value: Json, names: Iterable[str]) -> Json:
        """A value with the secrets of these names put in."""
        for name in names:
            if name in self._values:
                value = _put_in(value, mark(name), self._values[name])
        return value


@cache
def _taking_json(kind: type[msgspec.Struct]) -> frozenset[str]:
    """The fields that take any JSON."""
    return frozenset(field.name for field in msgspec.structs.fields(kind) if field.type is Any)


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
    """A text as it stands in other texts: as it is, as data or a picture of a value, or as data in
    a picture and the other way round."""
    written = [text, *_written(text)]
    return dict.fromkeys([*written, *(form for once in written for form in _written(once))])


def _written(text: str) -> Iterable[str]:
    """A text inside JSON, also in ASCII only, and inside of what `repr` gives: that depends on the
    quotes around it."""
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
