"""Formats and budgets of context, and texts with placeholders."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from turnloom.errors import UsageError
from turnloom.kernel.values import is_text, preview

_PLACE = re.compile(r"\{([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)\}")


def places_in(template: str) -> tuple[str, ...]:
    """The names that a template has places for, each once."""
    return tuple(dict.fromkeys(_PLACE.findall(template)))


def fill(template: str, text_of: Callable[[str], str]) -> str:
    """The template with a text in each place; what is put in is not looked through again."""
    return _PLACE.sub(lambda place: text_of(place[1]), template)


Kind = Literal["state", "retrieval", "literal", "variables", "artifact", "history"]
Fence = Literal["none", "json", "xml"]
Order = Literal["declared", "stable"]

HEADER = "{title}:\n"

# What a template can say of an item, by the kind of its segment.
FIELDS: Mapping[str, tuple[str, ...]] = {
    "state": ("content",),
    "literal": ("content",),
    "variables": ("content", "name"),
    "retrieval": ("content", "source_id", "chunk", "score", "collection"),
    "artifact": ("content", "artifact", "provider"),
    "history": ("content", "author", "seq"),
}

# How items are written, and what stands between two of them, unless a format says otherwise.
TEMPLATES: Mapping[str, str] = {
    "state": "{content}",
    "literal": "{content}",
    "variables": "- {name}: {content}",
    "retrieval": "{content}",
    "artifact": "{content}",
    "history": "{author}: {content}",
}
SEPARATORS: Mapping[str, str] = {
    "state": "\n",
    "literal": "\n",
    "variables": "\n",
    "retrieval": "\n---\n",
    "artifact": "\n",
    "history": "\n\n",
}


@dataclass(frozen=True, slots=True)
class Budget:
    """How many tokens the context of a turn may have, its separators and headers included.

    Raises:
        UsageError: there is no room for anything.
    """

    max_tokens: int

    def __post_init__(self) -> None:
        check_whole(self.max_tokens, "max_tokens", 1)


@dataclass(frozen=True, slots=True)
class ContextFormat:
    """How the context of a turn is written; as it is, segments are parted by a blank line.

    `header` stands above segments that have a title, `separator` between segments, `separators`
    between the items of a kind. `templates` say how the items of a kind are written, `citation`
    what follows each result of a retrieval. A `fence` has items written as JSON or XML instead.
    With the order `stable`, what changes least comes first, so that caches of prompts hit.

    Raises:
        UsageError: something in it could have no effect, or names what there is not.
    """

    header: str = HEADER
    separator: str = "\n\n"
    separators: Mapping[str, str] = field(default_factory=dict[str, str])
    templates: Mapping[str, str] = field(default_factory=dict[str, str])
    citation: str = ""
    fence: Fence = "none"
    order: Order = "declared"

    def __post_init__(self) -> None:
        _check_word(self.fence, "fence", get_args(Fence))
        _check_word(self.order, "order", get_args(Order))
        _check_template(self.header, "header", ("title",))
        _check_text(self.separator, "separator")
        for kind, text in self.separators.items():
            _check_word(kind, "A kind in `separators`", tuple(FIELDS))
            _check_text(text, f"separators[{kind!r}]")
        for kind, text in self.templates.items():
            _check_word(kind, "A kind in `templates`", tuple(FIELDS))
            _check_template(text, f"templates[{kind!r}]", FIELDS[kind], needed="content")
        _check_template(self.citation, "citation", FIELDS["retrieval"])
        self._check_fence()

    def _check_fence(self) -> None:
        """A fence says itself how items are written."""
        idle = [name for name in ("separators", "templates", "citation") if getattr(self, name)]
        if self.fence == "xml" and self.header != HEADER:
            idle.append("header")
        if self.fence != "none" and idle:
            raise UsageError(
                f"With fence={self.fence!r}, {', '.join(idle)} would have no effect: items are "
                "written as data. Drop them, or drop the fence."
            )

    def between(self, kind: str) -> str:
        """What stands between two items of a kind."""
        return self.separators.get(kind, SEPARATORS[kind])

    def template(self, kind: str) -> str:
        """How an item of a kind is written."""
        return self.templates.get(kind, TEMPLATES[kind])


def check_whole(value: object, what: str, least: int) -> None:
    """See that something is a whole number.

    Raises:
        UsageError: it is none, or less than `least`.
    """
    if type(value) is not int or value < least:
        raise UsageError(f"`{what}` is {preview(value)}. Give a whole number from {least} on.")


def _check_text(text: object, what: str) -> None:
    if not is_text(text):
        raise UsageError(f"`{what}` is {preview(text)}. Give a text.")


def _check_word(word: object, what: str, known: tuple[str, ...]) -> None:
    if word not in known:
        raise UsageError(f"{what} is {preview(word)}. Use one of {', '.join(known)}.")


def _check_template(
    template: str, what: str, known: tuple[str, ...], needed: str | None = None
) -> None:
    _check_text(template, what)
    places = places_in(template)
    unknown = [place for place in places if place not in known]
    if unknown:
        raise UsageError(f"`{what}` has a place for {unknown[0]!r}. It can say {', '.join(known)}.")
    if needed is not None and needed not in places:
        raise UsageError(f"`{what}` has no place for {needed!r}, so nothing would be shown.")


# Nothing said about the format.
PLAIN = ContextFormat()
