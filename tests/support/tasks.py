"""Tasks for engines that are asked without a run."""

from typing import Any

from turnloom.agents.spec import OutputSchema, Task
from turnloom.assembly.spec import Message, Transcript

NUMBERS = OutputSchema("Numbers", {"type": "array", "items": {"type": "integer"}})


def task(*said: tuple[str, str], **more: Any) -> Task:
    """A task for Ann, to whom this was said."""
    messages = [Message(n, author, text) for n, (author, text) in enumerate(said, 1)]
    return Task("run", "Ann", 1, 1, "run/t1/model", "Be Ann.", Transcript(messages), **more)
