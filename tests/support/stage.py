"""Where the code of workflow folders and the tests that run it meet.

A folder's code imports this module, so both see the same marks. `point` is a place at which the
process may be killed.
"""

import threading
from collections import Counter
from typing import Any

from turnloom.log.spec import RunKey
from turnloom.testing import Fuse

OUTCOMES = ("tool.returned", "tool.failed", "lifecycle.tool_result", "lifecycle.tool_error")

marks: list[str] = []
threads: dict[str, int] = {}
keys: list[str] = []
kept: dict[str, Any] = {}
fuse = Fuse()


def clear() -> None:
    """Begin with nothing."""
    marks.clear()
    threads.clear()
    keys.clear()
    kept.clear()
    burn(Fuse())


def burn(other: Fuse) -> None:
    """Count points with another fuse."""
    global fuse
    fuse = other


def point() -> None:
    """Be killed here, or not."""
    fuse.point()


def watch(log: Any, noted: list[str]) -> None:
    """Let calls be compared with a log, and note their keys."""
    global keys
    keys = noted
    kept["log"] = log


async def enter(context: Any) -> None:
    """A call of a tool or hook has begun: the log knows that, and has no outcome of it yet."""
    point()
    keys.append(context.idempotency_key)
    run, _, key = context.idempotency_key.partition("/")
    events = await kept["log"].read(RunKey("local", run))
    assert any(event.id == f"{key}?" for event in events), "acted before saying so"
    done = [event for event in events if event.id.rpartition(".")[0] == key]
    assert not any(event.kind in OUTCOMES for event in done), "what completed ran again"


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
