"""In which order hooks run, which are skipped or tried again, and what can be a hook."""

import asyncio
import logging
import threading
from pathlib import Path

import pytest

from tests.support import stage
from tests.support.hooked import (
    LINES,
    finished,
    hook,
    hooked,
    outcomes,
    play,
    told,
    values,
)
from tests.support.plays import serving, until
from tests.support.programs import begin, make_world
from turnloom.agents.spec import Answer, Task
from turnloom.testing import ScriptedEngine

FIRST = hook("before_chat", "before_chat")
LAST = hook("after_chat", "after_chat")


@pytest.fixture(autouse=True)
def clear_stage() -> None:
    stage.clear()


async def say_nothing(task: Task) -> Answer:
    """An agent that has nothing to say."""
    return Answer()


async def test_hooks_run_one_after_the_other_as_declared_and_as_they_depend(
    tmp_path: Path,
) -> None:
    code = """
async def step(name, turns):
    stage.mark(f"{name} begins")
    for _ in range(turns):
        await asyncio.sleep(0)
    stage.mark(f"{name} ends")
async def c(): await step("c", 0)
async def a(): await step("a", 9)
async def b(): await step("b", 0)
"""
    hooks = [
        hook("before_chat", "c", after=["a"]),
        hook("before_chat", "a"),
        hook("before_chat", "b"),
    ]
    await play(hooked(tmp_path, hooks, code))
    assert [mark for mark in stage.marks if mark.endswith("begins")] == [
        "a begins",
        "c begins",
        "b begins",
    ]
    assert stage.marks[1::2] == ["a ends", "c ends", "b ends"]


async def test_a_hook_is_skipped_when_one_that_it_follows_did_not_succeed(tmp_path: Path) -> None:
    hooks = [
        hook("before_agent", "bad", agent="A"),
        hook("before_agent", "good", name="then", after=["bad"]),
        hook("before_agent", "good", name="last", after=["then", "good"]),
        hook("before_agent", "good"),
    ]
    events = await play(hooked(tmp_path, hooks, "def good(): pass\ndef bad(): raise KeyError"))
    skipped = [("good", "success"), ("then", "skipped"), ("last", "skipped")]
    ends = [end[:2] for end in outcomes(events)]
    assert sorted(ends) == sorted([("bad", "KeyError"), *skipped, *skipped])
    reasons = {name: why for name, how, why in outcomes(events) if how == "skipped"}
    assert "bad" in reasons["then"] and "then" in reasons["last"]
    attempts = [fact.attempts for fact in told(events, "lifecycle.tool_result")]
    assert sorted(attempts) == [0, 0, 0, 0, 1, 1]


WHEN = """
    definitions:
      flag: {type: boolean, source: {type: environment, env_var: FLAG, default: false}}
      ready: {type: boolean, source: {type: derived, default: false, triggers: []}}
    """


@pytest.mark.parametrize(
    ("env", "reason"),
    [
        ({"FLAG": "1"}, ""),
        ({}, "flag"),
        ({"FLAG": "1", "ENVIRONMENT": "production"}, "ENVIRONMENT=production"),
    ],
)
async def test_a_hook_runs_only_when_its_condition_holds(
    env: dict[str, str], reason: str, tmp_path: Path
) -> None:
    code = """
def make(context_variables):
    context_variables["ready"] = True
def use(): pass
"""
    asked = "${flag} == True AND ready is true"
    hooks = [
        hook("before_agent", "use", when=asked),
        hook("after_agent", "make"),
    ]
    events = await play(hooked(tmp_path, hooks, code, context_variables=WHEN), env=env)
    first, last = [end for end in outcomes(events) if end[0] == "use"]
    assert first[:2] == ("use", "skipped")
    assert (reason or "ready") in first[2].replace(asked, "") and asked in first[2]
    assert last[:2] == ("use", "skipped" if reason else "success")
    assert reason in (last[2] or "").replace(asked, "")


async def test_a_hook_that_fails_is_tried_again_and_keeps_what_it_wrote(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    code = """
def flaky(context_variables):
    count = context_variables.setdefault("count", 0) + 1
    context_variables["count"] = count
    if count < 3:
        raise OSError(f"not yet: {count}")
    return count
def hopeless():
    raise OSError("never")
"""
    hooks = [
        hook("before_chat", "flaky", retries=4),
        hook("before_chat", "hopeless", retries=1),
    ]
    loop = asyncio.get_running_loop()
    before = loop.time()
    events = await play(hooked(tmp_path, hooks, code))
    assert loop.time() - before > 0.1 + 0.2 + 0.1, "it waits before it tries again"
    assert outcomes(events) == [("flaky", "success", 3), ("hopeless", "OSError", "never")]
    assert told(events, "lifecycle.tool_result")[0].attempts == 3
    assert told(events, "lifecycle.tool_error")[0].attempts == 2
    assert [fact.value for fact in told(events, "context.changed")] == [0, 1, 2, 3]
    failed = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
    assert len(failed) == 4 and "not yet: 2" in failed[1]


# ------------------------------------------------------------------ what can be a hook

KINDS = """
import functools
from turnloom import Context

class Sync:
    def __call__(self, ctx): ctx["sync_object"] = stage.mark("object")
class Async:
    async def __call__(self, ctx): ctx["async_object"] = stage.mark("loop")
class Bag:
    def method(self, ctx): ctx["method"] = 1

def plain(name, context_variables: "Context"): context_variables[name] = stage.mark("thread")
async def asynchronous(name, context_variables): context_variables[name] = stage.mark("loop")
def logged(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)
    return wrapper
def adapted(function):
    @functools.wraps(function)
    async def wrapper(*args, **kwargs):
        return await function(*args, **kwargs)
    return wrapper

sync_object, async_object, method = Sync(), Async(), Bag().method
partial_sync = functools.partial(plain, "partial_sync")
partial_async = functools.partial(asynchronous, "partial_async")
@logged
def decorated_sync(context_variables): context_variables["decorated_sync"] = stage.mark("thread")
@logged
async def decorated_async(context_variables):
    context_variables["decorated_async"] = (await use_ui_tool("ask")) == "Yes."
@adapted
async def wrapped_async(context_variables):
    context_variables["wrapped_async"] = (await use_ui_tool("ask")) == "Yes."
def by_type(anything: Context): anything["by_type"] = 1
def positional(context_variables, /): context_variables["positional"] = 1
def with_default(context_variables=None, more=5): context_variables["with_default"] = more
def typed_elsewhere(ctx: "Unknown") -> "Unknown": ctx["typed_elsewhere"] = 1
"""
NAMES = [
    "sync_object",
    "async_object",
    "method",
    "partial_sync",
    "partial_async",
    "decorated_sync",
    "decorated_async",
    "wrapped_async",
    "by_type",
    "positional",
    "with_default",
    "typed_elsewhere",
]


async def test_anything_that_can_be_called_can_be_a_hook(tmp_path: Path) -> None:
    folder = hooked(tmp_path, [hook("before_chat", name) for name in NAMES], KINDS)
    events = await play(folder)
    assert [end for end in outcomes(events) if end[1] != "success"] == []
    assert list(values(events)) == NAMES
    here = stage.threads["loop"]
    assert here != stage.threads["thread"] and here != stage.threads["object"]


async def test_a_hook_that_blocks_blocks_nobody_else(tmp_path: Path) -> None:
    blocking = hooked(tmp_path / "b", [FIRST], "def before_chat(): stage.kept['go'].wait(60)")
    quick = hooked(tmp_path / "q", [], "")
    go = stage.kept["go"] = threading.Event()
    async with serving(make_world(say_nothing)) as app:
        slow = await app.start(blocking, user_id="u1")
        await until(slow, "lifecycle.tool_call")
        fast = await app.start(quick, user_id="u1")
        await until(fast, "run.paused")
        assert told(await app.history.events(slow.id), "lifecycle.tool_result") == []
        go.set()
        await until(slow, "lifecycle.tool_result")


async def test_hooks_of_one_file_share_it_and_each_start_reads_it_afresh(tmp_path: Path) -> None:
    code = """
shared = []
def before_chat(): shared.append("VERSION"); return len(shared)
def after_chat(): return shared
"""
    hooks = [FIRST, LAST]
    folder = hooked(tmp_path, hooks, code)
    world = make_world(ScriptedEngine(LINES))
    first = await finished(world, await begin(world, folder))
    assert outcomes(first) == [
        ("before_chat", "success", 1),
        ("after_chat", "success", ["VERSION"]),
    ]
    hooked(tmp_path, hooks, code.replace("VERSION", "other"))
    second = await finished(world, await begin(world, folder))
    assert outcomes(second) == [("before_chat", "success", 1), ("after_chat", "success", ["other"])]
