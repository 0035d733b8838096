"""Texts against patterns: equality, containment and regular expressions that cannot stall."""

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, NamedTuple

import re2

from turnloom.variables.spec.triggers import AgentTextTrigger

# Patterns of this size at most are looked for together: sets of them stay within RE2's memory.
SMALL = 200


class Shape(NamedTuple):
    """What is done to a text before it is compared."""

    trim: bool
    fold: bool

    def of(self, text: str) -> str:
        """The text as it is compared."""
        return _shaped(text, self.trim, self.fold)


@lru_cache(maxsize=16)
def _shaped(text: str, trim: bool, fold: bool) -> str:
    """A text is compared with many patterns, one after the other."""
    text = text.strip() if trim else text
    return text.casefold() if fold else text


class TextPattern(NamedTuple):
    """How a trigger reads a text: `whole` is set when equality alone decides, `regex` when the
    text must hold a pattern that can be looked for together with others."""

    shape: Shape
    whole: str | None
    regex: str | None
    find: Callable[[str], str | None]


class Patterns:
    """Patterns of one shape, looked for all at once."""

    def __init__(self, shape: Shape, patterns: Iterable[str]) -> None:
        self._shape = Shape(shape.trim, False)
        self._set = re2.Set.SearchSet(_options(ignore_case=shape.fold))
        for pattern in patterns:
            self._set.Add(pattern)
        self._set.Compile()

    def found_in(self, text: str) -> list[int]:
        """Which of the patterns a text holds, by their number."""
        return self._set.Match(self._shape.of(text)) or []


def reader(trigger: AgentTextTrigger) -> TextPattern:
    """How a trigger reads texts; every part of its `match` must hold.

    What `find` gives is the captured group, or the text itself when nothing is captured.

    Raises:
        ValueError: the regular expression is not one that RE2 knows, or has no such group.
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
    options.log_errors = False  # the diagnostic says it
    return options


def compiled(regex: str, *, ignore_case: bool = False) -> Any:
    """A regular expression that no text can stall.

    Raises:
        ValueError: it is not one that RE2 knows.
    """
    try:
        return re2.compile(regex, _options(ignore_case=ignore_case))
    except re2.error as error:
        why = error.args[0].decode("utf-8", "replace")
        message = f"{regex!r} is not a regular expression that RE2 knows: {why}."
        raise ValueError(message) from error


def _check_group(pattern: Any, group: int | str) -> None:
    groups = pattern.groups if isinstance(group, int) else pattern.groupindex
    known = group <= groups if isinstance(group, int) else group in groups
    if not known:
        raise ValueError(f"The pattern has no group {group!r} to capture.")


# The message at which AG2 ends a chat, unless it is told otherwise.
ENDING = "TERMINATE"


def ends_chats(trigger: AgentTextTrigger) -> bool:
    """Whether a trigger waits for the very word that would end a chat of AG2."""
    words = (trigger.match.equals, trigger.match.contains)
    return any(word is not None and word.strip().upper() == ENDING for word in words)
