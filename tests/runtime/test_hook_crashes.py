"""Kill a run with hooks at any append and inside any hook or tool: its log is the log without."""

import asyncio
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support import stage
from tests.support.hooked import calls, hook, hooked, told
from tests.support.logs import essence
from tests.support.programs import Program, begin, make_world, mortal
from turnloom import Answer, Event, Task, ToolCall
from turnloom.adapters.sqlite import SqliteStore
from turnloom.runtime.logic import codec
from turnloom.testing import Fuse, Killed, ScriptedEngine

pytestmark = [pytest.mark.repeats, pytest.mark.doors]

HOOKS = [
    hook("before_chat", "start"),
    hook("before_chat", "ask"),
    hook("before_agent", "allocate", agent="A"),
    hook("before_agent", "late", when="done is true"),
    hook("after_agent", "bad", agent="B"),
    hook("after_agent", "then", after=["bad"]),
    hook("after_agent", "release", agent="A"),
    hook("after_chat", "end", on="always"),
]
CODE = """
def start(context_variables):
    stage.point()
    context_variables["chat_pool"] = stage.Pool("chat")
    context_variables["lives"] = 1
    stage.point()
async def ask(context_variables):
    stage.point()
    n = await context_variables.once("n", lambda: stage.point() or 5)
    context_variables["asked"] = [n, await use_ui_tool("form")]
    stage.point()
async def allocate(context_variables):
    stage.point()
    assert context_variables["chat_pool"].name == "chat"
    context_variables["db"] = stage.Pool()
    context_variables["lives"] += 1
    stage.point()
def late():
    stage.point()
def bad(context_variables):
    stage.point()
    context_variables["before_it_failed"] = True
    raise RuntimeError("bad")
def then():
    stage.point()
async def query(word: str, context_variables):
    stage.point()
    pool = context_variables["db"]
    answer = await use_ui_tool("query", {"word": word})
    context_variables["answer"] = f"{answer} {pool.name}"
    context_variables["done"] = True
    stage.point()
    return answer
def add(a: int, context_variables):
    stage.point()
    context_variables["sum"] = a + 1
    return a + 1
async def release(context_variables):
    stage.point()
    context_variables.pop("db").close()
    stage.point()
def end(context_variables):
    stage.point()
    return [context_variables["run_status"], "db" in context_variables]
"""
TOOLS = [
    {"agent": "A", "file": "h.py", "function": "query", "tool_type": "UI_Tool"},
    {"agent": "A", "file": "h.py", "function": "add"},
]
VARIABLES = """
    definitions:
      done: {type: boolean, source: {type: derived, default: false, triggers: []}}
      sum: {type: integer, source: {type: derived, triggers: []}}
      large: {type: boolean, source: {type: derived, default: false, triggers: [
        {type: context_changed, variable: sum, equals: 3}]}}
    agents:
      A: {variables: [done, sum]}
      B: {variables: [large, done]}
    """
LINES = {
    "A": [Answer(calls=(ToolCall("query", {"word": "x"}), ToolCall("add", {"a": 2}))), "Hello?"],
    "B": ["Bye."],
}


async def carry_on(program: Program, run: str, stop_at: str) -> None:
    """One life of a process: the user answers, or stops the run at a question."""
    await program.drive(run)
    while (last := (await program.app.history.events(run))[-1]).kind == "run.paused":
        if stop_at and re.search(stop_at, last.data.waiting_for):
            await program.cancel(run, by="boss")
        else:
            await program.answer(run, "Yes.")


async def live(
    folder: str, kills: Sequence[int], *, fails: bool = False, stop_at: str = "", store: Any = None
) -> tuple[list[Event], Fuse]:
    """A run over several lives, each killed after some points, the last one not."""
    stage.clear()
    world = make_world(fail if fails else ScriptedEngine(LINES), store)
    run = await begin(world, folder)
    for points in (*kills, None):
        fuse = Fuse(points)
        alive = len(stage.made())
        try:
            async with mortal(world, fuse) as program:
                await carry_on(program, run, stop_at)
        except (Killed, BaseExceptionGroup) as error:
            assert isinstance(error, Killed) or not error.split(Killed)[1], (
                "nothing else went wrong"
            )
            continue
        pools = [pool.closed for pool in stage.made()[alive:] if pool.name == "pool"]
        assert set(pools) <= {1}, "what this process made, it closed, and once"
    return await world.read(run), fuse


async def fail(task: Task) -> Answer:
    """An agent that cannot answer."""
    raise RuntimeError("lost")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    where = Path(tmp_path_factory.mktemp("hooks"))
    return hooked(where, HOOKS, CODE, TOOLS, context_variables=VARIABLES)


async def test_an_undisturbed_run_has_it_all(folder: str) -> None:
    events, _ = await live(folder, [])
    assert events[-1].kind == "run.finished"
    order = "start ask allocate release late bad end"
    assert [name for _, _, name in calls(events)] == order.split()
    skipped = [f.hook for f in told(events, "lifecycle.tool_result") if f.status == "skipped"]
    assert skipped == ["late", "then", "then"]


ENDINGS = {
    "finished": {},
    "failed": {"fails": True},
    "cancelled by a hook's question": {"stop_at": "^chat/"},
    "cancelled by a tool's question": {"stop_at": "tool.0/"},
    "cancelled between turns": {"stop_at": "/ask$"},
}


@pytest.mark.parametrize("how", ENDINGS)
async def test_a_kill_at_every_single_point_changes_nothing(folder: str, how: str) -> None:
    undisturbed, fuse = await live(folder, [], **ENDINGS[how])
    assert undisturbed[-1].kind == f"run.{how.partition(' ')[0]}"
    assert fuse.passed > 10
    for points in range(fuse.passed):
        events, _ = await live(folder, [points], **ENDINGS[how])
        assert essence(events) == essence(undisturbed), f"killed after {points} points"


FLAKY = """
def flaky(context_variables):
    stage.point()
    tries = context_variables["tries"] = context_variables.get("tries", 0) + 1
    stage.point()
    if tries < 2:
        raise OSError("again")
"""


async def test_a_kill_between_two_tries_changes_nothing(tmp_path: Path) -> None:
    folder = hooked(tmp_path, [hook("before_chat", "flaky", retries=2)], FLAKY)
    undisturbed, _ = await live(folder, [], stop_at="/ask$")
    assert told(undisturbed, "lifecycle.tool_result")[0].attempts == 2
    for points in range(8):
        events, _ = await live(folder, [points], stop_at="/ask$")
        assert essence(events) == essence(undisturbed), f"killed after {points} points"


async def test_a_kill_on_disk_changes_nothing(folder: str, tmp_path: Path) -> None:
    undisturbed, fuse = await live(folder, [])
    for points in range(0, fuse.passed, 7):
        store = SqliteStore(tmp_path / f"{points}.db", codec())
        try:
            events, _ = await live(folder, [points], store=store)
        finally:
            await store.aclose()
        assert essence(events) == essence(undisturbed), f"killed after {points} points"


@settings(max_examples=12)
@given(kills=st.lists(st.integers(0, 60), min_size=2, max_size=5), how=st.sampled_from([*ENDINGS]))
def test_any_sequence_of_kills(folder: str, kills: list[int], how: str) -> None:
    more = ENDINGS[how]
    events, _ = asyncio.run(live(folder, kills, **more))
    undisturbed, _ = asyncio.run(live(folder, [], **more))
    assert essence(events) == essence(undisturbed)
