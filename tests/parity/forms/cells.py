"""What a form makes of a feature: it works, and a run shows it; or it is refused, with a reason."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# Plays a small run with a feature or without it, and gives what is seen of it.
Play = Callable[[bool, Path], Awaitable[Any]]


@dataclass(frozen=True)
class Works:
    """A feature that a form has: how it is written, where a page tells of it, and what is seen
    without it and with it."""

    written: str
    page: str
    play: Play
    before: Any
    after: Any


@dataclass(frozen=True)
class Refused:
    """A feature that a form does not have: why, what says so, and how it is tried. `code` is that
    of a diagnostic, or the name of an error."""

    why: str
    code: str
    attempt: Callable[[Path], Awaitable[Any]]


Cell = Works | Refused
