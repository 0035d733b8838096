"""Hooks that ask people: the run waits, and goes on as if nothing had been."""

from datetime import timedelta
from pathlib import Path

import pytest

from tests.support import stage
from tests.support.hooked import (
    LINES,
    TRIGGERS,
    calls,
    finish,
    finished,
    hook,
    hooked,
    outcomes,
    play,
    told,
)
from tests.support.programs import Program, answer, begin, drive, make_world
from turnloom import Delivery
from turnloom.testing import ScriptedEngine


@pytest.fixture(autouse=True)
def clear_stage() -> None:
    stage.clear()


ASKS = "\n".join(
    f"async def {name}(): return [stage.mark('{name}'), await use_ui_tool('form')]"
    for name in TRIGGERS
)


async def test_hooks_may_ask_at_every_point_and_turns_are_told_of_all_the_same(
    tmp_path: Path,
) -> None:
    events = await play(hooked(tmp_path, [hook(name, name) for name in TRIGGERS], ASKS))
    assert [name for _, _, name in calls(events)] == [
        *("before_chat", "before_agent", "after_agent", "before_agent", "after_agent", "after_chat")
    ]
    assert [result for _, _, result in outcomes(events)] == [
        [2, "Yes."],
        *([2, "Yes."], [2, "Yes."], [4, "Yes."], [4, "Yes."]),
        [2, "Yes."],
    ]
    turns = [(e.kind, e.data.agent) for e in events if e.kind.startswith("turn.")]
    assert turns == [
        ("turn.started", "A"),
        ("turn.finished", "A"),
        ("turn.started", "B"),
        ("turn.finished", "B"),
    ]
    assert events[-1].kind == "run.finished"


async def test_a_question_of_a_hook_survives_a_restart(tmp_path: Path) -> None:
    """It stays the question that it is, and is asked once."""
    world = make_world(ScriptedEngine(LINES))
    run = await begin(world, hooked(tmp_path, [hook(name, name) for name in TRIGGERS], ASKS))
    for _ in range(7):
        await drive(world, run)
        assert await answer(world, run, "Yes.") is Delivery.TAKEN
    events = await finished(world, run)
    asked = [fact.question for fact in told(events, "question.asked")]
    assert len(asked) == len(set(asked)) == 7
    assert events[-1].kind == "run.finished"


async def test_waiting_does_not_count_against_the_time_of_a_hook(tmp_path: Path) -> None:
    code = """
async def slow():
    return await use_ui_tool("form")
"""
    folder = hooked(tmp_path, [hook("before_chat", "slow", timeout_s=30)], code)
    world = make_world(ScriptedEngine(LINES))
    async with Program(world) as program:
        run = await program.start(folder)
        await program.drive(run)
        world.clock.advance(timedelta(hours=1))
        events = await finish(program, run)
    assert outcomes(events) == [("slow", "success", "Yes.")]


async def test_questions_asked_side_by_side_are_asked_one_after_the_other(tmp_path: Path) -> None:
    code = """
async def both():
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(use_ui_tool(name)) for name in ("one", "two")]
    return [task.result() for task in tasks]
async def gathered():
    return await asyncio.gather(use_ui_tool("one"), use_ui_tool("two"))
"""
    hooks = [hook("before_chat", "both"), hook("before_chat", "gathered")]
    events = await play(hooked(tmp_path, hooks, code))
    assert outcomes(events) == [
        ("both", "success", ["Yes.", "Yes."]),
        ("gathered", "success", ["Yes.", "Yes."]),
    ]
    asked = [(fact.question, fact.tool) for fact in told(events, "question.asked") if fact.tool]
    assert asked == [
        (f"chat/before_chat.{hook}/ask.{n}", tool)
        for hook in (0, 1)
        for n, tool in enumerate(["one", "two"])
    ]


@pytest.mark.parametrize(
    "handler", ["return 'caught'", "raise RuntimeError('caught')", "raise SystemExit", "pass"]
)
async def test_a_hook_cannot_go_on_without_its_answer(handler: str, tmp_path: Path) -> None:
    code = f"""
async def asks(context_variables):
    try:
        given = await use_ui_tool("form")
    except BaseException:
        {handler}
        given = await use_ui_tool("another")
    return given
"""
    events = await play(hooked(tmp_path, [hook("before_chat", "asks", retries=2)], code))
    assert outcomes(events) == [("asks", "success", "Yes.")]
    assert [fact.tool for fact in told(events, "question.asked")] == ["form", ""]


async def test_who_cannot_ask_is_told_so(tmp_path: Path) -> None:
    code = """
def sync():
    try:
        use_ui_tool("form").send(None)
    except StopIteration:
        pass
async def stranger(): await use_ui_tool("form", chat_id="another")
async def odd(): await use_ui_tool("form", {1, 2})
async def effect(context_variables): await context_variables.once(chr(0xd800), dict)
"""
    names = ["sync", "stranger", "odd", "effect"]
    events = await play(hooked(tmp_path, [hook("before_chat", name) for name in names], code))
    assert [(name, error) for name, error, _ in outcomes(events)] == [
        (name, "UsageError") for name in names
    ]
    assert "async def" in outcomes(events)[0][2]
    assert all(not fact.tool for fact in told(events, "question.asked"))
