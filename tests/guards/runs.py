"""Runs with guards: an agent that goes on and on, and what is on record of it."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.support.plays import Person, answering, play
from turnloom.agents.spec import Answer, Task, ToolCall, Usage
from turnloom.log.spec import Event

TOOLS = """
def look(n: int = 0):
    return n

def note():
    pass

async def dawdle():
    import asyncio
    await asyncio.sleep(5)
"""


def endless(guards: Mapping[str, Any], *agents: str, **setup: Any) -> dict[str, str]:
    """A folder whose agents speak one after the other, and never come to an end by themselves."""
    names = agents or ("A",)
    rules = setup.pop("rules", None) or [
        {"source_agent": name, "target_agent": after, "handoff_type": "after_work"}
        for name, after in zip(names, (*names[1:], names[0]), strict=True)
    ]
    files = {
        "orchestrator": {"max_turns": 40, "guards": guards, **setup},
        "agents": {
            name: {"system_message": f"You are {name}.", "tools": ["look", "dawdle"]}
            for name in names
        },
        "handoffs": rules,
        "tools": {"tools": [{"file": "code.py", "function": f} for f in ("look", "dawdle")]},
    }
    return {f"{part}.json": json.dumps(said) for part, said in files.items()} | {"code.py": TOOLS}


SOME = Usage(60, 40)


class Says:
    """An engine that says something else each time, or what it is given, and uses some tokens."""

    def __init__(self, *said: Any, usage: Usage = SOME) -> None:
        self.tasks: list[Task] = []
        self._said = said
        self._usage = usage

    async def __call__(self, task: Task) -> Answer:
        """The next thing to say: a text, or the names of tools to call."""
        self.tasks.append(task)
        place = len(self.tasks) - 1
        said = self._said[place % len(self._said)] if self._said else f"Thought {place}."
        if isinstance(said, str):
            return Answer(said, self._usage)
        return Answer("", self._usage, tuple(ToolCall(tool, {}) for tool in said))


async def go_on(
    where: Path,
    guards: Mapping[str, Any],
    *agents: str,
    engine: Any = None,
    person: Person | None = None,
    **setup: Any,
) -> list[Event]:
    """The log of a run of agents that never come to an end by themselves."""
    files = endless(guards, *agents, **setup)
    return await play(where, files, person or answering(), engine or Says())
