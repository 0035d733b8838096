"""Redaction of values: removing or transforming them by path."""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import NamedTuple

from turnloom.errors import ContextUnavailable, UsageError
from turnloom.kernel.values import Json, as_array, as_object
from turnloom.variables.logic.types import apart, is_json

# Returns the replacement of a value, given its path and the value.
Transform = Callable[[str, Json], Json]

# Matches any number of names, including none.
DEEP = "**"

# Marks a removed value.
_GONE = object()


class RedactionRule(NamedTuple):
    """A rule by the path names of the values; without a transform they are removed."""

    names: tuple[str, ...]
    transform: Transform | None = None


def rule(key: object, transform: Transform | None = None) -> RedactionRule:
    """The rule of a dotted key.

    Raises:
        UsageError: the key is invalid.
    """
    if not isinstance(key, str) or not all(key.split(".")):
        raise UsageError(
            f"Invalid redaction key {key!r}. Write names separated by dots, as in "
            "'customer.email'; `*` matches any name or part of one, `**` any number of names."
        )
    names = key.split(".")
    if strange := next((each for each in names if _is_foreign(each)), ""):
        raise UsageError(
            f"Invalid redaction key {key!r}: {strange!r} would be taken literally. Write names "
            "separated by dots; list elements are searched, or selected by index, as in "
            "'lines.0.card'."
        )
    while names[-1:] == [DEEP]:
        names.pop()
    return RedactionRule(tuple(names) or ("*",), transform)


def _is_foreign(name: str) -> bool:
    """Whether a name uses another path syntax, or has blanks around it."""
    return name == "$" or name.endswith("]") or name != name.strip()


def redact(value: Json, rules: Sequence[RedactionRule]) -> tuple[Json, tuple[str, ...]]:
    """A value without the parts that match the rules, and the paths of those; lists are searched.

    Raises:
        ContextUnavailable: a transform fails.
    """
    paths: list[str] = []
    return _inside(value, rules, "", paths), tuple(paths)


def _inside(value: Json, rules: Sequence[RedactionRule], path: str, paths: list[str]) -> Json:
    if (mapping := as_object(value)) is not None:
        kept = {
            name: _at(each, [*_behind(rules, name)], f"{path}.{name}" if path else name, paths)
            for name, each in mapping.items()
        }
        return {name: each for name, each in kept.items() if each is not _GONE}
    if (elements := as_array(value)) is not None:
        listed = [
            _at(each, [*rules, *_behind(rules, str(n))], f"{path}.{n}", paths)
            for n, each in enumerate(elements)
        ]
        return [each for each in listed if each is not _GONE]
    return value


def _at(value: Json, rules: Sequence[RedactionRule], path: str, paths: list[str]) -> Json:
    hit = next((each for each in rules if not each.names), None)
    if hit is None:
        return _inside(value, rules, path, paths)
    paths.append(path)
    return _GONE if hit.transform is None else _transformed(hit.transform, path, value)


def _behind(rules: Sequence[RedactionRule], name: str) -> Iterator[RedactionRule]:
    """The rest of the rules after a name; a name with dots also counts as several names."""
    yield from _behind_one(rules, name)
    if "." in name:
        left = list(rules)
        for part in name.split("."):
            left = [*_behind_one([each for each in left if each.names], part)]
        yield from left


def _behind_one(rules: Sequence[RedactionRule], name: str) -> Iterator[RedactionRule]:
    for each in rules:
        first, rest = each.names[0], each._replace(names=each.names[1:])
        if first == DEEP:
            yield each
            yield from _behind_one([rest], name)
        elif _pattern(first).fullmatch(name):
            yield rest


@cache
def _pattern(name: str) -> re.Pattern[str]:
    return re.compile(".*".join(map(re.escape, name.split("*"))), re.DOTALL)


def _transformed(transform: Transform, path: str, value: Json) -> Json:
    # The error is named but not quoted: its message may contain the value.
    try:
        made = transform(path, apart(value))
    except Exception as error:
        raise ContextUnavailable(
            f"The transform of {path!r} raised {type(error).__name__!r}. "
            "Make it accept every value."
        ) from error
    if not is_json(made):
        raise ContextUnavailable(
            f"The transform of {path!r} returned a {type(made).__name__!r}. Return JSON."
        )
    return made
