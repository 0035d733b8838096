"""How many questions of a run may be open at once."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.support.folders import write_folder
from turnloom import Answer, Loom, Task, ToolCall, UsageError

FILES = {
    "agents.yaml": "A: {system_message: Hi.}",
    "tools.json": '{"tools": [{"agent": "A", "file": "people.py", "function": "wonder"}]}',
    "people.py": """
        from turnloom import use_ui_tool

        async def wonder(about: str):
            return await use_ui_tool("Form", {"prompt": about})
        """,
}
SOON = 60.0


async def engine(task: Task) -> Answer:
    if task.exchanges:
        results = [str(each.result) for each in task.exchanges[-1].results]
        return Answer(" | ".join(results))
    return Answer(calls=tuple(ToolCall("wonder", {"about": word}) for word in ("a", "b", "c")))


def declare(folder: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """Work in a folder with these settings."""
    monkeypatch.chdir(folder)
    (folder / "turnloom.toml").write_text(text)


async def paused(run: Any) -> None:
    async for event in run.events():
        if event.kind == "run.paused":
            return


@pytest.mark.parametrize(("declared", "asked"), [("", 3), ("[limits]\nquestions = 2\n", 2)])
async def test_open_questions_are_limited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, declared: str, asked: int
) -> None:
    declare(tmp_path, monkeypatch, declared)
    async with Loom(store="memory", engine=engine) as app, asyncio.timeout(SOON):
        run = await app.start(write_folder(tmp_path, FILES))
        await paused(run)
        questions = await run.questions()
        assert len(questions) == asked
        for each in questions:
            await run.answer(each.id, {"fine": True})
        await run.finished()
        events = await app.history.events(run.id)
        failed = [each.data.error for each in events if each.kind == "tool.failed"]
        assert failed == ["TooManyQuestions"] * (3 - asked)


@pytest.mark.parametrize("wrong", ["0", "-1", "'x'", "true", "[]"])
async def test_a_wrong_limit_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: str
) -> None:
    declare(tmp_path, monkeypatch, f"[limits]\nquestions = {wrong}\n")
    with pytest.raises(UsageError, match="limits.questions"):
        async with Loom(store="memory", engine=engine) as app:
            await app.start(write_folder(tmp_path, FILES))
