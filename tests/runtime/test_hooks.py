"""Lifecycle hooks: each when it is due, once, in order; and whatever one does, the run goes on."""

import logging
from pathlib import Path

import pytest

from tests.support import stage
from tests.support.hooked import LINES, TRIGGERS, calls, hook, hooked, outcomes, play, told
from tests.support.plays import serving, until
from tests.support.programs import make_world
from turnloom.agents.spec import Answer, Task
from turnloom.log.spec import Event
from turnloom.testing import ScriptedEngine

FOUR = [hook(trigger, trigger) for trigger in TRIGGERS]
MARKING = "\n".join(f"def {name}():\n    stage.mark('{name}')" for name in TRIGGERS)
PAIR_A = [("before_agent", "A", "before_agent"), ("after_agent", "A", "after_agent")]
PAIR_B = [("before_agent", "B", "before_agent"), ("after_agent", "B", "after_agent")]
FIRST, LAST = ("before_chat", None, "before_chat"), ("after_chat", None, "after_chat")


@pytest.fixture(autouse=True)
def clear_stage() -> None:
    stage.clear()


async def fail_as(task: Task) -> Answer:
    """An agent that cannot answer."""
    raise RuntimeError(f"{task.agent} is lost")


async def say_nothing(task: Task) -> Answer:
    """An agent that has nothing to say."""
    return Answer()


# ------------------------------------------------------------------ when hooks run


async def test_hooks_surround_the_chat_and_every_turn_of_an_agent(tmp_path: Path) -> None:
    events = await play(hooked(tmp_path, FOUR, MARKING))
    assert calls(events) == [FIRST, *PAIR_A, *PAIR_B, LAST]
    assert [how for _, how, _ in outcomes(events)] == ["success"] * 6
    assert stage.marks == [name for _, _, name in calls(events)]
    kinds = [event.kind for event in events]
    assert kinds.index("lifecycle.tool_call") < kinds.index("turn.started")
    assert kinds[-2:] == ["lifecycle.tool_result", "run.finished"]
    for turn in (1, 2):
        ids = [event.id for event in events if event.id.startswith(f"t{turn}/")]
        assert ids[0] == f"t{turn}/before_agent.1?"
        assert ids[-2:] == [f"t{turn}/after_agent.2.0", f"t{turn}/end"]


async def test_hooks_surround_a_silent_turn(tmp_path: Path) -> None:
    events = await play(hooked(tmp_path, FOUR, MARKING), say_nothing)
    assert told(events, "agent.text") == []
    assert calls(events) == [FIRST, *PAIR_A, *PAIR_B, LAST]


async def test_hooks_surround_a_turn_that_fails(tmp_path: Path) -> None:
    events = await play(hooked(tmp_path, FOUR, MARKING), fail_as)
    assert calls(events) == [FIRST, *PAIR_A]
    assert [event.kind for event in events[-3:]] == [
        "lifecycle.tool_result",
        "turn.finished",
        "run.failed",
    ]


async def test_hooks_of_an_agent_go_with_its_turns_alone(tmp_path: Path) -> None:
    hooks = [hook("before_agent", "before_agent", agent="B"), hook("after_agent", "after_agent")]
    events = await play(hooked(tmp_path, hooks, MARKING))
    assert calls(events) == [PAIR_A[1], *PAIR_B]


ENDINGS = [hook("after_chat", "tell", name=on, on=on) for on in ("success", "failure", "always")]
TELL = """
def tell(context_variables):
    return context_variables["run_status"]
"""


async def cancelled(folder: str) -> list[Event]:
    """A run that is cancelled while it waits for its user."""
    world = make_world(ScriptedEngine(LINES))
    async with serving(world) as app:
        run = await app.start(folder, user_id="u1")
        await until(run, "run.paused")
        assert await run.cancel(by="boss")
        return [event async for event in run.events()]


async def test_hooks_after_the_chat_know_how_it_ended(tmp_path: Path) -> None:
    folder = hooked(tmp_path, [*ENDINGS, hook("before_chat", "peek")], f"{TELL}{PEEK}")
    finished = await play(folder)
    assert outcomes(finished)[0] == ("peek", "success", [])
    assert outcomes(finished)[1:] == [
        ("success", "success", "finished"),
        ("always", "success", "finished"),
    ]
    for status, events in (
        ("failed", await play(folder, fail_as)),
        ("cancelled", await cancelled(folder)),
    ):
        assert events[-1].kind == f"run.{status}"
        assert outcomes(events)[1:] == [
            ("failure", "success", status),
            ("always", "success", status),
        ]


PEEK = """
def peek(context_variables):
    return [name for name in context_variables if name == "run_status"]
"""


# ------------------------------------------------------------------ whatever a hook does

TROUBLES = {
    "raise RuntimeError('No.')": ("RuntimeError", "No."),
    "raise SystemExit(3)": ("SystemExit", "3"),
    "raise TimeoutError": ("TimeoutError", ""),
    "raise ExceptionGroup('all', [ValueError('a')])": ("ExceptionGroup", "all (1 sub-exception)"),
    "raise Mute": ("Mute", "its message cannot be read (ZeroDivisionError)"),
    "raise ValueError('x' * 5000)": ("ValueError", "x" * 1999 + "…"),
    "raise ValueError('\\ud800')": ("ValueError", "\\ud800"),
    "return missing": ("NameError", "name 'missing' is not defined"),
}
MUTE = """
class Mute(Exception):
    def __str__(self):
        return 1 / 0
"""


@pytest.mark.parametrize("kind", ["def", "async def"])
@pytest.mark.parametrize("trouble", TROUBLES)
async def test_a_hook_in_trouble_is_recorded_and_the_run_goes_on(
    trouble: str, kind: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    code = "\n".join(f"{kind} {name}():\n    {trouble}" for name in TRIGGERS)
    events = await play(hooked(tmp_path, FOUR, f"{MUTE}\n{code}"))
    assert events[-1].kind == "run.finished"
    assert calls(events) == [FIRST, *PAIR_A, *PAIR_B, LAST]
    assert [(error, message) for _, error, message in outcomes(events)] == [TROUBLES[trouble]] * 6
    lines = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert [record.name for record in lines] == ["turnloom.lifecycle"] * 6
    assert lines[0].getMessage().startswith("hook before_chat of run run1 failed\n")
    assert "h.py" in lines[0].getMessage()


async def test_a_cancellation_of_the_hooks_own_is_no_cancellation_of_the_run(
    tmp_path: Path,
) -> None:
    code = """
async def before_chat():
    gone = asyncio.create_task(asyncio.sleep(60))
    gone.cancel()
    await gone
async def before_agent():
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(fail())
            await asyncio.sleep(60)
    except* ValueError:
        pass
    return "fine"
async def fail():
    raise ValueError
"""
    events = await play(hooked(tmp_path, FOUR[:2], code))
    assert events[-1].kind == "run.finished"
    assert outcomes(events)[1:] == [("before_agent", "success", "fine")] * 2
    assert outcomes(events)[0][1:] == ("CancelledError", "It cancelled itself.")


@pytest.mark.parametrize(
    "body",
    ["def slow():\n    time.sleep(1)", SLEEP := "async def slow():\n    await asyncio.sleep(60)"],
)
async def test_a_slow_hook_is_left_alone(body: str, tmp_path: Path) -> None:
    hooks = [hook("before_agent", "slow", timeout_s=0.05)]
    events = await play(hooked(tmp_path, hooks, f"import time\n{body}"))
    assert events[-1].kind == "run.finished"
    assert outcomes(events) == [("slow", "TimeoutError", "It took over 0.05 s.")] * 2


async def test_what_a_hook_gives_is_recorded_for_observers(tmp_path: Path) -> None:
    code = """
def number(): return 5
def long(): return ["x" * 3000]
def nothing(): return None
def false(): return False
def thing(): return stage.Pool
async def odd(): return {"set": {1}, "at": __import__("datetime").date(2026, 1, 2)}
"""
    names = ["number", "long", "nothing", "false", "thing", "odd"]
    events = await play(hooked(tmp_path, [hook("before_chat", name) for name in names], code))
    given = {name: result for name, status, result in outcomes(events) if status == "success"}
    assert list(given) == names
    assert (given["number"], given["nothing"], given["false"]) == (5, None, False)
    assert given["long"] == '["' + "x" * 1997 + "…"
    assert given["thing"] == "<class 'tests.support.stage.Pool'>"
    assert given["odd"] == {"set": [1], "at": "2026-01-02"}
