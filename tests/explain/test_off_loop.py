"""Explanations are computed beside the loop, which others use."""

import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from tests.support.folders import write_folder
from turnloom import Loom

TALK = {
    "orchestrator.yaml": "{initial_agent: Poet, max_turns: 3}",
    "agents.yaml": "agents: {Poet: {system_message: Rhyme., engine: scripted}}",
    "context_variables.yaml": """
        definitions: {tone: {type: string, source: {type: static, value: dry}}}
        agents: {Poet: {variables: [tone]}}
        """,
    "handoffs.yaml": """
        handoff_rules: [{source_agent: Poet, target_agent: Poet, handoff_type: after_work}]
        """,
    "script.yaml": "agents: {Poet: [Roses., Violets., Tulips.]}",
}


async def entered(ask: Callable[[], Awaitable[Any]]) -> set[str]:
    """The modules of explanations whose functions the thread of the loop enters meanwhile."""
    found: set[str] = set()

    def note(frame: FrameType, event: str, _: Any) -> None:
        module = frame.f_globals.get("__name__", "")
        if event == "call" and module.startswith("turnloom.explain.logic"):
            found.add(module)

    sys.setprofile(note)
    try:
        await ask()
    finally:
        sys.setprofile(None)
    return found


@pytest.mark.parametrize("what", ["timeline", "turn", "variable", "route"])
async def test_nothing_is_computed_on_the_loop(tmp_path: Path, what: str) -> None:
    write_folder(tmp_path, TALK, "Talk")
    async with Loom(store="memory") as app:
        run = await app.start(tmp_path / "Talk")
        await run.finished()
        routes = [
            each.seq for each in await app.history.events(run.id) if each.kind == "route.decided"
        ]
        asked: dict[str, Callable[[], Awaitable[Any]]] = {
            "timeline": lambda: app.explain.timeline(run.id),
            "turn": lambda: app.explain.turn(run.id, 2),
            "variable": lambda: app.explain.variable(run.id, "tone"),
            "route": lambda: app.explain.route(run.id, routes[0]),
        }
        assert str(await asked[what]())
        assert await entered(asked[what]) == set()
