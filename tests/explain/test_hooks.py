"""Hooks in a turn: those that ask, that ran again, and that change what agents read and say."""

from pathlib import Path
from typing import Any

import pytest

from tests.explain.conftest import FLOW, Engine, Tell, of, said, tells
from tests.explain.workshop import LINES, REPLIES, TOKEN, WORKSHOP
from tests.support.folders import write_folder
from turnloom import Answer, Loom
from turnloom.agents.spec import ToolCall
from turnloom.explain.logic.timeline import timeline
from turnloom.explain.spec import steps
from turnloom.explain.spec import steps as details

ASKING = FLOW | {
    "orchestrator.yaml": "{initial_agent: Asker, max_turns: 1}",
    "tools.yaml": """
        tools: [{agent: Asker, file: ask.py, function: ask, tool_type: UI_Tool}]
        lifecycle_tools:
          - {trigger: before_agent, agent: null, file: ask.py, function: may_i}
        """,
    "tools/ask.py": """
        from turnloom import use_ui_tool

        async def ask():
            return await use_ui_tool("ask", {}, timeout=0.01)

        async def may_i():
            return await use_ui_tool("may_i", {"title": "May I?"})
        """,
}


async def test_a_hook_that_asks_and_a_question_that_nobody_answers(tmp_path: Path) -> None:
    engine = Engine({"Asker": [Answer(calls=(ToolCall("ask"),)), "Well."]})
    async with Loom(store="memory", engine=engine) as app:
        run = await app.start(write_folder(tmp_path, ASKING))
        async for event in run.events():
            if event.kind == "run.paused" and "before_agent" in event.data.waiting_for:
                before: Any = await app.explain.turn(run.id, 1)
                await run.answer(None, "Yes.")
        found: Any = await app.explain.turn(run.id, 1)
        assert (before.seq, before.steps[0].status) == (0, "open")
        (hook,) = of(found, steps.HookEntry)
        assert (hook.status, hook.result) == ("success", "Yes.") and hook.waited >= 0
        (asked,) = said(hook.within)
        assert tells(asked, "local", "'May I?'", "local", '"Yes."')
        (tool,) = of(found, steps.ToolEntry)
        question, raised = tool.within
        assert isinstance(raised, details.StackEntry)
        assert isinstance(question, details.QuestionEntry) and question.status == "expired"
        assert tool.error.startswith("QuestionExpired")
        assert tells(str(await app.explain.timeline(run.id)), "local", '"Yes."')


async def test_a_hook_that_ran_again_in_another_process_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TURNLOOM_TEST_TOKEN", TOKEN)
    folder, store = write_folder(tmp_path, WORKSHOP), str(tmp_path / "runs.db")
    async with Loom(store=store, engine=Engine(LINES)) as app:
        run = (await app.start(folder)).id
        async for event in app.handle(run).events():
            if event.kind == "run.paused":
                paused = event.seq
                break
    async with Loom(store=store, engine=Engine(LINES)) as app:
        await app.resume(run)
        left = iter(REPLIES)
        async for event in app.handle(run).events(paused - 1):
            if event.kind == "run.paused":
                await app.handle(run).answer(None, next(left))
        found: Any = await app.explain.turn(run, 1)
        timeline = str(await app.explain.timeline(run))
    (again,) = [step for step in of(found, steps.HookEntry) if step.restored]
    assert tells(again.says, "unlock", "before_chat", "restored", "success")
    assert found.verified and tells(timeline, "before_chat", "restored")


HOOKED = {
    "agents.yaml": "A: {system_message: Speak.}",
    "orchestrator.yaml": "{initial_agent: A, initial_message: Begin., max_turns: 1}",
    "tools.yaml": "tools: [{agent: A, file: shout.py, function: look}]",
    "hooks.yaml": """
        hooks:
          - {hook_type: update_agent_state, hook_agent: A, filename: shout.py, function: update}
          - {hook_type: process_last_received_message, hook_agent: all, filename: shout.py,
             function: upper}
          - {hook_type: process_message_before_send, hook_agent: A, filename: shout.py,
             function: polite}
          - {hook_type: process_message_before_send, hook_agent: A, filename: shout.py,
             function: broken}
        """,
    "shout.py": """
        def update(agent, messages):
            agent.update_system_message("Speak up.")

        def upper(content):
            return content.upper()

        def polite(sender, message, recipient, silent):
            return f"Please: {message}"

        def broken(sender, message, recipient, silent):
            raise RuntimeError("no")

        def look() -> str:
            return "seen"
        """,
}


async def test_message_hooks_are_steps_and_what_they_made_is_the_frame(tell: Tell) -> None:
    told = await tell(HOOKED, {"A": [Answer("Hm.", calls=(ToolCall("look"),)), "Done."]}, ())
    found = told.turn(1)
    assert found.verified and [task.turn for task in told.tasks] == [1, 1]
    for task in told.tasks:
        assert found.prompt == task.prompt
        assert found.exchanges[: len(task.exchanges)] == task.exchanges
    assert tells(found.exchanges[0].text, "'broken'")
    assert [(each.kind, each.origin) for each in found.segments] == [
        ("instruction", "hooks.A"),
        ("message", "hooks"),
        ("tool", "tools.look"),
    ]
    ran = [
        (each.hook, each.trigger, each.status, each.result) for each in of(found, steps.HookEntry)
    ]
    sent = "process_message_before_send"
    assert ran == [
        ("update", "update_agent_state", "success", "Speak up."),
        ("upper", "process_last_received_message", "success", "BEGIN."),
        ("polite", sent, "success", "Please: Hm."),
        ("broken", sent, "error", None),
        ("polite", sent, "success", "Please: Done."),
        ("broken", sent, "error", None),
    ]
    asked = of(found, steps.ModelCallEntry)
    (first,), (second,) = [said(each.within) for each in asked]
    assert tells(first, "'broken'") and tells(second, "'broken'")
    rows = [(row.depth, row.who, row.note) for row in timeline(told.events).rows]
    (broken, _) = [note for depth, who, note in rows if (depth, who) == (1, "broken")]
    assert tells(broken, sent, "RuntimeError: no")
