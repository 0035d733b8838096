"""Casts of agents for whole runs, the rules between them, and who spoke."""

from collections.abc import Mapping, Sequence
from typing import Any

from tests.support.plays import every, solo
from turnloom.agents.spec import Answer, Task
from turnloom.log.spec import Event
from turnloom.testing import ScriptedEngine

ROSTER = ("A", "B", "C")


def folder(
    setup: Mapping[str, Any],
    *rules: Mapping[str, Any],
    agents: Mapping[str, Any] | None = None,
    **parts: Any,
) -> dict[str, str]:
    """A folder with three agents, unless others are given."""
    roster = agents or {name: {"system_message": f"You are {name}."} for name in ROSTER}
    return solo("", agents=roster, orchestrator=setup, handoffs=rules, **parts)


def rule(source: str, target: str, condition: str | None = None, **more: Any) -> dict[str, Any]:
    """A handoff under a condition, or after work."""
    kind = "condition" if condition else "after_work"
    said = {"condition": condition} if condition else {}
    return {"source_agent": source, "target_agent": target, "handoff_type": kind, **said, **more}


def chooses(source: str, target: str, words: str) -> dict[str, Any]:
    """A handoff that the model of an agent judges."""
    return rule(source, target, words, condition_type="string_llm")


class Speaking:
    """An engine that says something for everybody, and what it is told to for some."""

    def __init__(self, **said: Sequence[str | Answer]) -> None:
        self._script = ScriptedEngine(said)
        self.tasks: list[Task] = []

    async def __call__(self, task: Task) -> Answer:
        self.tasks.append(task)
        if task.agent in self._script.lines:
            return await self._script(task)
        return Answer(f"{task.agent} {task.number}")


def speakers(events: Sequence[Event]) -> str:
    """Who spoke, the user included, in order."""
    spoke = {"turn.started": "agent", "user.text": "author"}
    found = [getattr(event.data, spoke[event.kind]) for event in events if event.kind in spoke]
    return " ".join(found)


def reasons(events: Sequence[Event]) -> list[str]:
    """Why the work went where it went, route by route."""
    return [each.reason for each in every(events, "route.decided")]


VARIABLES = {
    "definitions": {
        name: {
            "type": "boolean",
            "source": {
                "type": "derived",
                "default": False,
                "triggers": [{"type": "agent_text", "agent": "A", "match": {"contains": name}}],
            },
        }
        for name in ("red", "green", "blue")
    }
}


def before(source: str, target: str, condition: str) -> dict[str, Any]:
    """A handoff that is judged before an agent would reply."""
    return rule(source, target, condition, condition_scope="pre")
