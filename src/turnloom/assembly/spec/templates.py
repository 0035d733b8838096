"""Texts with places in them: `{name}` or `{name.name}`."""

import re
from collections.abc import Callable

_PLACE = re.compile(r"\{([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)\}")


def places_in(template: str) -> tuple[str, ...]:
    """The names that a template has places for, each once."""
    return tuple(dict.fromkeys(_PLACE.findall(template)))


def fill(template: str, text_of: Callable[[str], str]) -> str:
    """The template with a text in each place; what is put in is not looked through again."""
    return _PLACE.sub(lambda place: text_of(place[1]), template)
