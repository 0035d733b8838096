"""A workflow with two agents, a user and hooks, and what its log tells of the hooks."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.support.folders import as_json, write_folder
from tests.support.plays import attend
from tests.support.programs import Program, make_world
from tests.support.world import World
from turnloom import Engine, Event
from turnloom.testing import ScriptedEngine

# A speaks, the user answers, B speaks, and that was it.
TALK = {
    "orchestrator.yaml": "{initial_agent: A, human_in_the_loop: true}",
    "agents.yaml": "A: {system_message: First.}\nB: {system_message: Second.}",
    "handoffs.yaml": """
        - {source_agent: A, target_agent: user, handoff_type: after_work}
        - {source_agent: user, target_agent: B, handoff_type: after_work}
        - {source_agent: B, target_agent: terminate, handoff_type: after_work}
        """,
}
LINES = {"A": ["Hello?"], "B": ["Bye."]}
CODE = "import asyncio\nfrom tests.support import stage\nfrom turnloom import use_ui_tool\n"

TRIGGERS = ("before_chat", "before_agent", "after_agent", "after_chat")


def hook(trigger: str, function: str, **more: Any) -> dict[str, Any]:
    """An entry of `lifecycle_tools`."""
    return {"trigger": trigger, "agent": None, "file": "h.py", "function": function, **more}


def hooked(
    where: Path,
    hooks: Sequence[Mapping[str, Any]],
    code: str,
    tools: Sequence[Mapping[str, Any]] = (),
    **files: str,
) -> str:
    """The folder of a talk with these hooks, whose functions are in this code."""
    declared = {"tools": list(tools), "lifecycle_tools": list(hooks)}
    more = {f"{name}.yaml": text for name, text in files.items()}
    texts = {**TALK, "tools.json": json.dumps(declared), **more}
    folder = write_folder(where, as_json(texts))
    Path(folder, "h.py").write_text(CODE + code, "utf-8")
    return folder


def calls(events: Sequence[Event]) -> list[tuple[str, str | None, str]]:
    """The calls of hooks: when, in whose turn, which."""
    return [
        (e.data.trigger, e.data.agent, e.data.hook)
        for e in events
        if e.kind == "lifecycle.tool_call"
    ]


def outcomes(events: Sequence[Event]) -> list[tuple[str, str, Any]]:
    """How hooks ended: which, how, with what."""
    found: list[tuple[str, str, Any]] = []
    for event in events:
        if event.kind == "lifecycle.tool_result":
            found.append((event.data.hook, event.data.status, event.data.result))
        elif event.kind == "lifecycle.tool_error":
            found.append((event.data.hook, event.data.error, event.data.message))
    return found


def told(events: Sequence[Event], kind: str) -> list[Any]:
    """The facts of a kind."""
    return [event.data for event in events if event.kind == kind]


def values(events: Sequence[Event]) -> dict[str, Any]:
    """What variables were changed to, by name."""
    return {fact.name: fact.value for fact in told(events, "context.changed")}


async def finish(program: Program, run: str, value: Any = "Yes.") -> list[Event]:
    """The log of a run that one process takes to its end, a person saying the same to all."""
    return await attend(program, run, value if callable(value) else lambda asked: value)


async def finished(world: World, run: str, value: Any = "Yes.") -> list[Event]:
    """The log of a run that a process of its own takes to its end."""
    async with Program(world) as program:
        return await finish(program, run, value)


async def play(
    folder: str,
    engine: Engine | None = None,
    env: Mapping[str, str] | None = None,
    says: Any = "Yes.",
) -> list[Event]:
    """The log of a whole run."""
    async with Program(make_world(engine or ScriptedEngine(LINES), env=env)) as program:
        return await finish(program, await program.start(folder), says)
