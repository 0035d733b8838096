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


HASTY = {
    **FILES,
    "orchestrator.yaml": "{initial_agent: A, human_in_the_loop: true}",
    "handoffs.yaml": """
        handoff_rules:
          - {source_agent: A, target_agent: user, handoff_type: after_work}
          - {source_agent: user, target_agent: A, handoff_type: after_work}
        """,
    "people.py": """
        import asyncio
        from pathlib import Path
        from turnloom import use_ui_tool

        async def wonder(about: str):
            try:
                return await use_ui_tool("Form", {"prompt": about})
            finally:
                if about == "turn 1":  # tidies up for ever
                    Path("parked").touch()
                    await asyncio.Event().wait()
        """,
}


async def test_a_question_that_is_cut_off_takes_no_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def wonder(task: Task) -> Answer:
        if task.exchanges:
            return Answer(str(task.exchanges[-1].results[0].result))
        return Answer(calls=(ToolCall("wonder", {"about": f"turn {task.turn}"}),))

    declare(tmp_path, monkeypatch, "[limits]\nquestions = 1\n")
    async with Loom(store="memory", engine=wonder) as app, asyncio.timeout(SOON):
        run = await app.start(write_folder(tmp_path, HASTY))
        while not (tmp_path / "parked").exists():  # noqa: ASYNC110 - the tool touches it
            await asyncio.sleep(0.01)
        assert (await run.send("Something else", if_busy="interrupt")).verdict == "interrupts"
        await paused(run)
        assert [each.prompt for each in await run.questions()] == ["turn 2"]
