"""Values that are no JSON: alive while their process is, made again while their scope is open."""

import asyncio
import gc
import weakref
from pathlib import Path

import pytest

from tests.support import stage
from tests.support.hooked import LINES, finish, finished, hook, hooked, outcomes, told
from tests.support.plays import serving, until
from tests.support.programs import Program, begin, drive, make_world
from turnloom.agents.spec import Answer, Task, ToolCall
from turnloom.testing import ScriptedEngine

# More runs at rest than a process keeps in memory.
MANY = 300

# The second example of seed 004: a pool for one agent's turn, and a tool that asks while it has it.
POOLED = [
    hook("before_agent", "allocate", agent="A"),
    hook("after_agent", "release", agent="A"),
]
CODE = """
async def allocate(context_variables):
    pool = stage.Pool()
    context_variables.data["db_connection"] = pool
    context_variables["uses"] = 0
    return {"status": "allocated"}

async def query(context_variables):
    pool = context_variables["db_connection"]
    assert not pool.closed
    context_variables["uses"] += 1
    answer = await use_ui_tool("query", {"title": "Which?"})
    return f"{answer} from {pool.name}"

async def release(context_variables):
    pool = context_variables.data.get("db_connection")
    if pool:
        pool.close()
        del context_variables.data["db_connection"]
    return {"status": "released", "uses": context_variables["uses"]}
"""
TOOLS = [{"agent": "A", "file": "h.py", "function": "query", "tool_type": "UI_Tool"}]
ASKED = {"A": [Answer(calls=(ToolCall("query"),)), "Got it."], "B": ["Bye."]}


@pytest.fixture(autouse=True)
def clear_stage() -> None:
    stage.clear()


@pytest.fixture
def folder(tmp_path: Path) -> str:
    return hooked(tmp_path, POOLED, CODE, TOOLS)


async def test_a_pool_lives_through_a_question(folder: str) -> None:
    world = make_world(ScriptedEngine(ASKED))
    events = await finished(world, await begin(world, folder))
    assert [pool.closed for pool in stage.made()] == [1]
    assert told(events, "tool.returned")[0].result == "Yes. from pool"
    assert outcomes(events) == [
        ("allocate", "success", {"status": "allocated"}),
        ("release", "success", {"status": "released", "uses": 1}),
    ]
    put, gone = [each for each in told(events, "context.changed") if each.name != "uses"]
    assert (put.value, put.ephemeral, put.undeclared) == ("<ephemeral Pool>", True, True)
    assert gone.removed
    assert "run.resumed" not in [event.kind for event in events]


async def test_a_pool_is_made_again_after_a_restart(folder: str) -> None:
    """Only the object: what else the hook wrote stands as it is."""
    first = make_world(ScriptedEngine(ASKED))
    run = await begin(first, folder)
    await drive(first, run)
    assert len(stage.made()) == 1
    events = await finished(first, run)
    old, new = stage.made()
    assert (old.closed, new.closed) == (0, 1)
    assert told(events, "tool.returned")[0].result == "Yes. from pool"
    again = [fact.restored for fact in told(events, "lifecycle.tool_call")]
    assert again == [False, True, False]
    restored = told(events, "lifecycle.tool_result")[1]
    assert (restored.hook, restored.agent, restored.restored) == ("allocate", "A", True)
    changes = [(fact.name, fact.removed) for fact in told(events, "context.changed")]
    assert changes == [
        ("db_connection", False),
        ("uses", False),
        ("uses", False),
        ("db_connection", True),
    ]


async def test_a_pool_is_closed_when_the_run_is_cancelled_in_the_turn(tmp_path: Path) -> None:
    """An interrupted drive does not lose what its process made."""
    begun = asyncio.Event()

    async def stuck(task: Task) -> Answer:
        begun.set()
        await asyncio.Event().wait()
        return Answer()

    async with serving(make_world(stuck)) as app:
        run = await app.start(hooked(tmp_path, POOLED, CODE), user_id="u1")
        await begun.wait()
        await run.cancel(by="boss")
        events = [event async for event in run.events()]
    assert [pool.closed for pool in stage.made()] == [1]
    assert [fact.restored for fact in told(events, "lifecycle.tool_call")] == [False, False]


async def test_a_pool_is_closed_when_the_run_is_cancelled_while_it_waits(folder: str) -> None:
    async with serving(make_world(ScriptedEngine(ASKED))) as app:
        run = await app.start(folder, user_id="u1")
        await until(run, "run.paused")
        await run.cancel(by="boss")
        events = [event async for event in run.events()]
    assert [pool.closed for pool in stage.made()] == [1]
    assert [fact.restored for fact in told(events, "lifecycle.tool_call")] == [False, False]


@pytest.mark.repeats
async def test_a_run_with_objects_keeps_them_however_many_wait(folder: str, tmp_path: Path) -> None:
    """More runs at rest than are kept in memory."""
    plain = hooked(tmp_path / "plain", [], "", orchestrator="startup_mode: UserDriven")
    async with Program(make_world(ScriptedEngine(ASKED))) as program:
        run = await program.start(folder)
        await program.drive(run)
        for _ in range(MANY):
            await program.drive(await program.start(plain))
        events = await finish(program, run)
    assert [fact.restored for fact in told(events, "lifecycle.tool_call")] == [False, False]
    assert [pool.closed for pool in stage.made()] == [1]


async def test_objects_of_runs_that_ended_are_let_go(tmp_path: Path) -> None:
    code = """
def keep(context_variables):
    context_variables["one"] = stage.Pool("one")
    context_variables["two"] = stage.Pool("two")
def drop(context_variables):
    del context_variables["one"]
"""
    hooks = [hook("before_chat", "keep"), hook("after_agent", "drop", agent="A")]
    async with Program(make_world(ScriptedEngine(LINES))) as program:
        run = await program.start(hooked(tmp_path, hooks, code))
        await program.drive(run)
        one, two = [weakref.ref(pool) for pool in stage.made()]
        stage.clear()
        gc.collect()
        assert one() is None and two() is not None
        await program.answer(run, "Yes.")
        gc.collect()
        assert two() is None
