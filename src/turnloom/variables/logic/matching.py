"""Text matching: equality, containment and linear-time regular expressions."""

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, NamedTuple

import re2

from turnloom.variables.spec.triggers import TextTrigger

# Maximum size of a pattern in a set, so that sets stay within RE2's memory limit.
SMALL = 200


class Shape(NamedTuple):
    """Normalisation of a text before comparison."""

    trim: bool
    fold: bool

    def of(self, text: str) -> str:
        """The normalised text."""
        return _shaped(text, self.trim, self.fold)


@lru_cache(maxsize=16)
def _shaped(text: str, trim: bool, fold: bool) -> str:
    """Cached, because a text is compared with many patterns."""
    text = text.strip() if trim else text
    return text.casefold() if fold else text


class TextPattern(NamedTuple):
    """How a trigger matches a text: `whole` is set if equality alone decides, `regex` if it is a
    pattern that can be searched in a set."""

    shape: Shape
    whole: str | None
    regex: str | None
    find: Callable[[str], str | None]


class Patterns:
    """Patterns with the same normalisation, searched together."""

    def __init__(self, shape: Shape, patterns: Iterable[str]) -> None:
        self._shape = Shape(shape.trim, False)
        self._set = re2.Set.SearchSet(_options(ignore_case=shape.fold))
        for pattern in patterns:
            self._set.Add(pattern)
        self._set.Compile()

    def found_in(self, text: str) -> list[int]:
        """The indexes of the patterns that a text contains."""
        return self._set.Match(self._shape.of(text)) or []


def reader(trigger: TextTrigger) -> TextPattern:
    """The text pattern of a trigger; every part of its `match` must hold.

    `find` returns the captured group, or the text itself without `capture`.

    Raises:
        ValueError: RE2 does not support the regular expression, or it lacks the group.
    """
    shape = Shape(trigger.trim and not trigger.exact, trigger.ignore_case and not trigger.exact)
    match = trigger.match
    whole = None if match.equals is None else shape.of(match.equals)
    part = (
        None
        if match.contains is None
        else (match.contains.casefold() if shape.fold else match.contains)
    )
    pattern = None if match.regex is None else compiled(match.regex, ignore_case=shape.fold)
    if trigger.capture is not None:
        _check_group(pattern, trigger.capture)

    def find(text: str) -> str | None:
        shaped = shape.of(text)
        if whole is not None and shaped != whole:
            return None
        if part is not None and part not in shaped:
            return None
        if pattern is None:
            return text
        found = pattern.search(Shape(shape.trim, False).of(text))
        if found is None or trigger.capture is None:
            return None if found is None else text
        return found.group(trigger.capture)

    alone = part is None and pattern is None
    small = pattern is not None and pattern.programsize <= SMALL
    return TextPattern(shape, whole if alone else None, match.regex if small else None, find)


def _options(*, ignore_case: bool) -> Any:
    options = re2.Options()
    options.case_sensitive = not ignore_case
    options.log_errors = False  # the diagnostic reports it
    return options


def compiled(regex: str, *, ignore_case: bool = False) -> Any:
    """A compiled regular expression with linear-time matching.

    Raises:
        ValueError: RE2 does not support it.
    """
    try:
        return re2.compile(regex, _options(ignore_case=ignore_case))
    except re2.error as error:
        why = error.args[0].decode("utf-8", "replace")
        message = f"RE2 does not support the regular expression {regex!r}: {why}."
        raise ValueError(message) from error


def _check_group(pattern: Any, group: int | str) -> None:
    groups = pattern.groups if isinstance(group, int) else pattern.groupindex
    known = group <= groups if isinstance(group, int) else group in groups
    if not known:
        raise ValueError(f"The regular expression has no group {group!r} to capture.")


# The message that ends an AG2 chat by default.
ENDING = "TERMINATE"


def ends_chats(trigger: TextTrigger) -> bool:
    """Whether a trigger waits for the word that ends an AG2 chat."""
    words = (trigger.match.equals, trigger.match.contains)
    return any(word is not None and word.strip().upper() == ENDING for word in words)
