"""Objects after a restart: hooks whose scope is open make theirs again, and write nothing else."""

from pathlib import Path
from typing import Any

import pytest

from tests.support import stage
from tests.support.hooked import calls, finish, finished, hook, hooked, outcomes, told
from tests.support.programs import Program, begin, drive, make_world
from turnloom.agents.spec import Answer, ToolCall
from turnloom.testing import ScriptedEngine

TOOLS = [{"agent": "A", "file": "h.py", "function": "query", "tool_type": "UI_Tool"}]
ASKED = {"A": [Answer(calls=(ToolCall("query"),)), "Got it."], "B": ["Bye."]}


@pytest.fixture(autouse=True)
def clear_stage() -> None:
    stage.clear()


async def test_a_hook_that_runs_again_makes_objects_and_writes_nothing(tmp_path: Path) -> None:
    """Values went on since; an object that was deleted stays so."""
    code = """
def start(context_variables):
    context_variables["count"] = 0
    context_variables["pool"] = stage.Pool("pool")
    context_variables["short"] = stage.Pool("short")
    del context_variables["short"]
    context_variables["gone"] = stage.Pool("gone")
    context_variables["changed"] = stage.Pool("changed")
def count(context_variables):
    context_variables["count"] += 1
    context_variables.remove("gone")
    context_variables["changed"] = "a text"
def tell(context_variables):
    names = [name for name in ("pool", "short", "gone") if name in context_variables]
    return [context_variables["count"], context_variables["changed"], *names]
"""
    hooks = [
        hook("before_chat", "start"),
        hook("after_agent", "count", agent="A"),
        hook("before_agent", "tell", agent="B"),
    ]
    lines: dict[str, Any] = {"A": ["Hello?"], "B": ["Bye."]}
    first = make_world(ScriptedEngine(lines))
    run = await begin(first, hooked(tmp_path, hooks, code))
    await drive(first, run)
    events = await finished(first, run)
    assert outcomes(events)[-1] == ("tell", "success", [1, "a text", "pool"])
    assert [fact.hook for fact in told(events, "lifecycle.tool_call") if fact.restored] == ["start"]


async def test_hooks_are_run_again_in_the_order_of_the_run_and_once(tmp_path: Path) -> None:
    """The chat's before the turn's; one that fails is not tried at every wake."""
    code = """
def turn(context_variables):
    stage.mark("turn")
    context_variables["turn"] = stage.Pool(context_variables["chat"].name + "/turn")
def chat(context_variables):
    stage.mark("chat")
    context_variables["chat"] = stage.Pool("chat")
def frail(context_variables):
    if stage.mark("frail") > 1:
        raise OSError("gone")
    context_variables["frail"] = stage.Pool("frail")
def used(context_variables):
    names = ("chat", "turn", "frail")
    return [context_variables[name].name for name in names if name in context_variables]
async def query(): return [await use_ui_tool("query"), await use_ui_tool("query")]
"""
    hooks = [
        hook("before_agent", "turn", agent="A"),
        hook("after_agent", "used", agent="A"),
        hook("before_chat", "chat"),
        hook("before_chat", "frail"),
    ]
    first = make_world(ScriptedEngine(ASKED))
    run = await begin(first, hooked(tmp_path, hooks, code, TOOLS))
    await drive(first, run)
    stage.marks.clear()
    stage.marks.append("frail")
    events = await finished(first, run)
    assert stage.marks[1:] == ["chat", "frail", "turn"]
    assert events[-1].kind == "run.finished"
    assert outcomes(events)[-1] == ("used", "success", ["chat", "chat/turn"])


async def test_objects_of_turns_and_tools_that_are_over_are_gone(tmp_path: Path) -> None:
    """Nobody makes them again, and nobody is shown a text in their place."""
    code = """
def leave(context_variables):
    context_variables["left"] = stage.Pool("left")
def query(context_variables):
    context_variables["tools"] = stage.Pool("tools")
def look(context_variables):
    return [name for name in context_variables if name in ("left", "tools")]
"""
    hooks = [hook("before_agent", "leave", agent="A"), hook("before_agent", "look", agent="B")]
    tools = [{"agent": "A", "file": "h.py", "function": "query"}]
    first = make_world(ScriptedEngine(ASKED))
    run = await begin(first, hooked(tmp_path, hooks, code, tools))
    await drive(first, run)
    events = await finished(first, run)
    assert outcomes(events)[-1] == ("look", "success", [])
    assert all(not fact.restored for fact in told(events, "lifecycle.tool_call"))


async def test_a_hook_of_every_turn_makes_its_object_again_for_the_open_one(tmp_path: Path) -> None:
    """Written anew by the same kind of object, it belongs to the turn that wrote it last."""
    code = """
def allocate(context_variables):
    context_variables["pool"] = stage.Pool(f"pool {len(stage.made())}")
async def query(context_variables):
    await use_ui_tool("query")
    return context_variables["pool"].name
"""
    tools = [{"agent": "B", "file": "h.py", "function": "query", "tool_type": "UI_Tool"}]
    lines: dict[str, Any] = {"A": ["Hello?"], "B": [Answer(calls=(ToolCall("query"),)), "Bye."]}
    first = make_world(ScriptedEngine(lines))
    folder = hooked(tmp_path, [hook("before_agent", "allocate")], code, tools)
    async with Program(first) as program:
        run = await program.start(folder)
        await program.drive(run)
        await program.answer(run, "Yes.")
    events = await finished(first, run)
    assert told(events, "tool.returned")[0].result == "pool 2"
    assert calls(events)[-1] == ("before_agent", "B", "allocate")
    assert [fact.restored for fact in told(events, "lifecycle.tool_call")] == [False, False, True]


async def test_a_process_does_not_mistake_its_own_object_for_one_that_another_made(
    tmp_path: Path,
) -> None:
    """Two processes take turns; the first one's object is not the value any more."""
    code = """
def chat(context_variables):
    context_variables["pool"] = stage.Pool(f"pool {len(stage.made())}")
def tell(context_variables):
    return context_variables["pool"].name if "pool" in context_variables else "none"
"""
    hooks = [
        hook("before_chat", "chat"),
        hook("before_agent", "chat", name="other", agent="B"),
        hook("before_agent", "tell", agent="C"),
    ]
    three = {
        "agents": "A: {system_message: a.}\nB: {system_message: b.}\nC: {system_message: c.}",
        "handoffs": """
            - {source_agent: A, target_agent: user, handoff_type: after_work}
            - source_agent: user
              target_agent: B
              handoff_type: condition
              condition: first is true
            - {source_agent: user, target_agent: C, handoff_type: after_work}
            - {source_agent: B, target_agent: user, handoff_type: after_work}
            - {source_agent: C, target_agent: terminate, handoff_type: after_work}
            """,
        "context_variables": """
            definitions:
              first: {type: boolean, source: {type: derived, default: true, triggers: [
                {type: agent_turn_count, agent: B, count: 1, value: false}]}}
            """,
    }
    lines: dict[str, Any] = {"A": ["a"], "B": ["b"], "C": ["c"]}
    one = make_world(ScriptedEngine(lines))
    async with Program(one) as here, Program(one) as there:
        run = await here.start(hooked(tmp_path, hooks, code, **three))
        await here.drive(run)
        await there.answer(run, "Yes.")
        events = await finish(here, run)
    assert events[-1].kind == "run.finished"
    assert outcomes(events)[-1] == ("tell", "success", "none")
