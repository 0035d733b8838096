"""Workflows whose tools ask."""

import json
from collections.abc import Sequence
from typing import Any

CODE = """
from turnloom import use_ui_tool


async def ask():
    return await use_ui_tool("ask", {payload!r}, timeout={timeout!r})
"""

PLAN = {"title": "My plan", "steps": 5}
VERDICT = {
    "type": "object",
    "properties": {
        "verdict": {"enum": ["accepted", "refused"], "description": "What you think of it."}
    },
    "required": ["verdict"],
}
PERSON = {
    "type": "object",
    "properties": {
        "tags": {"type": "array", "items": {"type": "string"}},
        "name": {"type": "string", "description": "What you are called."},
        "nick": {"type": ["string", "null"]},
        "age": {"type": "integer", "minimum": 0},
        "adult": {"type": "boolean"},
        "colour": {"enum": ["red", "blue"]},
    },
    "required": ["name", "nick", "age", "adult"],
    "additionalProperties": False,
}


def asking(
    response: Any = None,
    payload: Any = PLAN,
    timeout: float | None = None,
    user: Sequence[Any] = (),
) -> dict[str, str]:
    """A workflow whose only agent calls a tool that asks once and returns the answer."""
    tool = {"agent": "Clerk", "file": "asks.py", "function": "ask", "tool_type": "UI_Tool"}
    ui = {"ui": {"response": response}} if response else {}
    lines = [{"calls": [{"tool": "ask"}]}, "Thank you."]
    return {
        "orchestrator.yaml": "{initial_agent: Clerk}",
        "agents.yaml": "Clerk: {system_message: Ask., engine: scripted}",
        "tools.json": json.dumps({"tools": [tool | ui]}),
        "asks.py": CODE.format(payload=payload, timeout=timeout),
        "script.json": json.dumps({"agents": {"Clerk": lines}, "user": list(user)}),
    }
