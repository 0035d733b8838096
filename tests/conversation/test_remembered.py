"""A folder that did not change is not parsed and checked again; one that changed is."""

import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from tests.support.folders import write_folder
from turnloom import DefinitionError, Loom
from turnloom.wiring import Folders

TALK = {
    "orchestrator.yaml": "{initial_agent: Poet, max_turns: 2}",
    "agents.yaml": "agents: {Poet: {system_message: Rhyme., engine: scripted}}",
    "tools.yaml": """
        tools: []
        lifecycle_tools: [{trigger: before_chat, agent: null, file: words.py, function: begin}]
        """,
    "script.yaml": "agents: {Poet: [Roses.]}",
    "tools/words.py": """
        from helpers import WORD
        def begin(): return WORD
        """,
    "helpers.py": "WORD = 'one'",
}

WATCHED = {"ruamel.yaml.scanner": "parser", "turnloom.conversation.logic.rules": "check"}


def entered(work: Callable[[], Any]) -> Counter[str]:
    """How often functions of the parser and of the check are entered meanwhile."""
    found: Counter[str] = Counter()

    def note(frame: FrameType, event: str, _: Any) -> None:
        module = frame.f_globals.get("__name__", "")
        if event == "call" and module in WATCHED:
            found[WATCHED[module]] += 1

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return found


def test_the_same_contents_are_parsed_and_checked_once(tmp_path: Path) -> None:
    write_folder(tmp_path, TALK, "Talk")
    path, folders = str(tmp_path / "Talk"), Folders()
    first = entered(lambda: folders.examine(path))
    assert first["parser"] > 100 and first["check"]
    assert not entered(lambda: folders.examine(path))
    (tmp_path / "Talk" / "script.yaml").write_text("agents: {Poet: [Tulips.]}", "utf-8")
    one = entered(lambda: folders.examine(path))
    assert 0 < one["parser"] < first["parser"] and one["check"]
    assert entered(lambda: Folders().examine(path))["parser"] > 100


async def test_every_change_of_a_folder_counts(tmp_path: Path) -> None:
    """Of declarations, of code, of modules that it imports; files that come and go."""
    write_folder(tmp_path, TALK, "Talk")
    folder = tmp_path / "Talk"
    async with Loom(store="memory") as app:

        async def said() -> tuple[Any, str]:
            run = await app.start(folder)
            await run.finished()
            events = await app.history.events(run.id)
            results = [each.data for each in events if each.kind == "lifecycle.tool_result"]
            texts = [each.data.text for each in events if each.kind == "agent.text"]
            return results[0].result if results else None, texts[0]

        assert await said() == await said() == ("one", "Roses.")
        (folder / "helpers.py").write_text("WORD = 'two'", "utf-8")
        assert await said() == ("two", "Roses.")
        (folder / "script.yaml").write_text("agents: {Poet: [Tulips.]}", "utf-8")
        assert await said() == ("two", "Tulips.")
        (folder / "handoffs.yaml").write_text("handoff_rules: 5", "utf-8")
        with pytest.raises(DefinitionError):
            await said()
        (folder / "handoffs.yaml").unlink()
        assert await said() == ("two", "Tulips.")
        (folder / "tools.yaml").unlink()
        assert await said() == (None, "Tulips.")
        (folder / "helpers.py").unlink()
        assert await said() == (None, "Tulips.")
