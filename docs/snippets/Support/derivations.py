"""Variables derived from a letter."""

from collections.abc import Mapping
from typing import Any

from turnloom import UNCHANGED, Event, derivation


@derivation
def is_upset(event: Event, values: Mapping[str, Any]) -> Any:
    """Whether the letter is in capitals."""
    if event.kind != "user.text":
        return UNCHANGED
    return event.data.text.count("!") >= 3
