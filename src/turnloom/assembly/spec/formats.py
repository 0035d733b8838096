"""Formats and budgets of context, and templates."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from turnloom.errors import UsageError
from turnloom.kernel.values import is_text, preview

_PLACE = re.compile(r"\{([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)\}")


def places_in(template: str) -> tuple[str, ...]:
    """The names of a template's placeholders, without duplicates."""
    return tuple(dict.fromkeys(_PLACE.findall(template)))


def fill(template: str, text_of: Callable[[str], str]) -> str:
    """Fill in the placeholders of a template; inserted texts are not expanded again."""
    return _PLACE.sub(lambda place: text_of(place[1]), template)


Kind = Literal["state", "retrieval", "literal", "variables", "artifact", "history"]
Fence = Literal["none", "json", "xml"]
Order = Literal["declared", "stable"]

HEADER = "{title}:\n"

# The placeholders of an item template, by the kind of its segment.
FIELDS: Mapping[str, tuple[str, ...]] = {
    "state": ("content",),
    "literal": ("content",),
    "variables": ("content", "name"),
    "retrieval": ("content", "source_id", "chunk", "score", "collection"),
    "artifact": ("content", "artifact", "provider"),
    "history": ("content", "author", "seq"),
}

# Default item templates, and default separators between items.
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
    """The maximum tokens of a turn's context, separators and headers included.

    Raises:
        UsageError: `max_tokens` is less than 1.
    """

    max_tokens: int

    def __post_init__(self) -> None:
        check_whole(self.max_tokens, "max_tokens", 1)


@dataclass(frozen=True, slots=True)
class ContextFormat:
    """How the context of a turn is rendered; by default, blank lines separate segments.

    `header` precedes segments with a title, `separator` goes between segments, `separators` between
    items, by kind. `templates` render items by kind; `citation` follows each retrieval result. A
    `fence` renders items as JSON or XML instead. The order `stable` puts what changes least first,
    which helps prompt caches.

    Raises:
        UsageError: an option is unknown or would have no effect.
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
        """Reject options that a fence makes ineffective."""
        idle = [name for name in ("separators", "templates", "citation") if getattr(self, name)]
        if self.fence == "xml" and self.header != HEADER:
            idle.append("header")
        if self.fence != "none" and idle:
            raise UsageError(
                f"With fence={self.fence!r}, {', '.join(idle)} has no effect: items are rendered "
                "as data. Remove it, or remove the fence."
            )

    def between(self, kind: str) -> str:
        """The separator between two items of a kind."""
        return self.separators.get(kind, SEPARATORS[kind])

    def template(self, kind: str) -> str:
        """The template for items of a kind."""
        return self.templates.get(kind, TEMPLATES[kind])


def check_whole(value: object, what: str, least: int) -> None:
    """Check an integer argument.

    Raises:
        UsageError: it is not an integer, or less than `least`.
    """
    if type(value) is not int or value < least:
        raise UsageError(f"`{what}` must be an integer of at least {least}, not {preview(value)}.")


def _check_text(text: object, what: str) -> None:
    if not is_text(text):
        raise UsageError(f"`{what}` must be a text, not {preview(text)}.")


def _check_word(word: object, what: str, known: tuple[str, ...]) -> None:
    if word not in known:
        raise UsageError(f"{what} must be one of {', '.join(known)}, not {preview(word)}.")


def _check_template(
    template: str, what: str, known: tuple[str, ...], needed: str | None = None
) -> None:
    _check_text(template, what)
    places = places_in(template)
    unknown = [place for place in places if place not in known]
    if unknown:
        raise UsageError(
            f"`{what}` has an unknown placeholder {unknown[0]!r}. Use {', '.join(known)}."
        )
    if needed is not None and needed not in places:
        raise UsageError(f"`{what}` lacks the placeholder {needed!r}. Add `{{{needed}}}`.")


# The default format.
PLAIN = ContextFormat()
