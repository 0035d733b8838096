"""Where the code of workflow folders and the tests that run it meet.

A folder's code imports this module, so both see the same marks. `point` is a place at which the
process may be killed.
"""

import threading
from collections import Counter
from typing import Any

from turnloom.testing import Fuse

marks: list[str] = []
threads: dict[str, int] = {}
kept: dict[str, Any] = {}
fuse = Fuse()


def clear() -> None:
    """Begin with nothing."""
    marks.clear()
    threads.clear()
    kept.clear()
    burn(Fuse())


def burn(other: Fuse) -> None:
    """Count points with another fuse."""
    global fuse
    fuse = other


def point() -> None:
    """Be killed here, or not."""
    fuse.point()


def mark(name: str) -> int:
    """Note that something was done, and where; how often by now."""
    marks.append(name)
    threads[name] = threading.get_ident()
    return Counter(marks)[name]


class Pool:
    """A thing that is no JSON, is to be closed once, and is known to the stage while it lives."""

    def __init__(self, name: str = "pool") -> None:
        self.name = name
        self.closed = 0
        made().append(self)

    def close(self) -> None:
        """Give it back."""
        self.closed += 1


def made() -> list[Pool]:
    """The pools that were made since the stage was cleared."""
    return kept.setdefault("pools", [])
