"""A run that is cancelled: in a turn, in a hook, while it waits; its hooks still have their say."""

import asyncio
from pathlib import Path

import pytest

from tests.support import stage
from tests.support.hooked import LINES, TRIGGERS, calls, hook, hooked, outcomes, told
from tests.support.plays import serving, until
from tests.support.worlds import make_world
from turnloom.agents.spec import Answer, Engine, Task
from turnloom.log.spec import Event
from turnloom.testing import ScriptedEngine

EVERY = [hook(trigger, trigger) for trigger in TRIGGERS[:3]]
EVERY.append(hook("after_chat", "after_chat", on="always"))
FIRST = ("before_chat", None, "before_chat")
BEFORE, AFTER = ("before_agent", "A", "before_agent"), ("after_agent", "A", "after_agent")
LAST = ("after_chat", None, "after_chat")


@pytest.fixture(autouse=True)
def clear_stage() -> None:
    stage.clear()


def coded(trigger: str, body: str) -> str:
    """Four hooks that do nothing, and one of them this, the first time."""
    plain = "\n".join(f"async def {name}(): stage.mark('{name}')" for name in TRIGGERS)
    return f"""
{plain}
async def {trigger}(context_variables):
    if stage.mark("{trigger}") > 1:
        return context_variables.get("run_status")
{body}
"""


HANGS = "    stage.kept['hangs'].set()\n    await asyncio.Event().wait()"
DEAF = f"""
    try:
    {HANGS.replace(chr(10), chr(10) + "    ")}
    except BaseException:
        return "deaf"
"""


async def cancel_in_hook(folder: str) -> list[Event]:
    """The log of a run that is cancelled when a hook says that it hangs."""
    stage.kept["hangs"] = asyncio.Event()
    async with serving(make_world(ScriptedEngine(LINES))) as runs:
        run = await runs.start(folder, user="u1", tenant="acme")
        waiting = asyncio.create_task(stage.kept["hangs"].wait())
        while not waiting.done():
            question = await runs.question(run)
            if question is not None:
                await runs.answer(run, question.id, "Yes.")
            await asyncio.wait({waiting}, timeout=0.01)
        assert await runs.cancel(run, by="boss")
        return [event async for event in runs.events(run)]


@pytest.mark.parametrize("body", [HANGS, DEAF])
async def test_a_cancel_in_a_hook_before_something_ends_it(body: str, tmp_path: Path) -> None:
    """What it prepared for does not come; what comes afterwards does."""
    events = await cancel_in_hook(hooked(tmp_path / "chat", EVERY, coded("before_chat", body)))
    assert calls(events) == [FIRST, LAST]
    ended = ("Cancelled", "The run was cancelled.")
    assert outcomes(events) == [("before_chat", *ended), ("after_chat", "success", None)]
    assert events[-1].kind == "run.cancelled"

    stage.clear()
    events = await cancel_in_hook(hooked(tmp_path / "agent", EVERY, coded("before_agent", body)))
    assert calls(events) == [FIRST, BEFORE, AFTER, LAST]
    assert outcomes(events)[1] == ("before_agent", *ended)
    assert told(events, "turn.finished")[-1].status == "cancelled"
    assert events[-1].kind == "run.cancelled"


@pytest.mark.parametrize("body", [HANGS, DEAF])
async def test_a_cancel_in_a_hook_after_a_turn_has_it_begin_again(
    body: str, tmp_path: Path
) -> None:
    """What it cleans up must be cleaned up; it is called once as far as the log goes."""
    events = await cancel_in_hook(hooked(tmp_path, EVERY, coded("after_agent", body)))
    assert stage.marks.count("after_agent") == 2
    assert calls(events) == [FIRST, BEFORE, AFTER, LAST]
    assert [end[:2] for end in outcomes(events)] == [
        ("before_chat", "success"),
        ("before_agent", "success"),
        ("after_agent", "success"),
        ("after_chat", "success"),
    ]
    assert told(events, "turn.finished")[-1].status == "cancelled"
    assert events[-1].kind == "run.cancelled"


async def test_a_cancel_that_comes_when_all_is_done_changes_nothing(tmp_path: Path) -> None:
    """A hook was told that the run finished, so it did."""
    events = await cancel_in_hook(hooked(tmp_path, EVERY, coded("after_chat", HANGS)))
    assert calls(events).count(LAST) == 1
    assert outcomes(events)[-1] == ("after_chat", "success", "finished")
    assert events[-1].kind == "run.finished"
    assert "cancel.requested" in [event.kind for event in events]


async def test_a_cancel_of_a_run_that_fails_leaves_it_failed(tmp_path: Path) -> None:
    async def fail(task: Task) -> Answer:
        raise RuntimeError("lost")

    stage.kept["hangs"] = asyncio.Event()
    folder = hooked(tmp_path, EVERY, coded("after_chat", HANGS))
    async with serving(make_world(fail)) as runs:
        run = await runs.start(folder, user="u1", tenant="acme")
        await stage.kept["hangs"].wait()
        assert await runs.cancel(run, by="boss")
        events = [event async for event in runs.events(run)]
    assert outcomes(events)[-1] == ("after_chat", "success", "failed")
    assert events[-1].kind == "run.failed"


async def cancel_waiting(folder: str, engine: Engine) -> list[Event]:
    """The log of a run that is cancelled while a hook waits for a person."""
    async with serving(make_world(engine)) as runs:
        run = await runs.start(folder, user="u1", tenant="acme")
        position = 0
        while True:
            paused = await until(runs, run, "run.paused", position)
            if "ask.0" in paused.data.waiting_for:
                break
            await runs.answer(run, paused.data.waiting_for, "Yes.")
            position = paused.seq
        assert await runs.cancel(run, by="boss")
        return [event async for event in runs.events(run)]


ALWAYS_ASKS = "async def {0}(context_variables):\n    return await use_ui_tool('form')\n"
REFUSED = ("UsageError", "The run was cancelled; nobody is asked any more.")


@pytest.mark.parametrize("trigger", TRIGGERS)
async def test_a_cancel_while_a_hook_waits_for_a_person(trigger: str, tmp_path: Path) -> None:
    code = coded(trigger, "    pass") + ALWAYS_ASKS.format(trigger)
    events = await cancel_waiting(hooked(tmp_path, EVERY, code), ScriptedEngine(LINES))
    before = trigger.startswith("before")
    ended = ("Cancelled", "The run was cancelled.") if before else REFUSED
    assert (trigger, *ended) in outcomes(events)
    made = calls(events)
    assert made.count(LAST) == 1
    assert [made.count(each) for each in (BEFORE, AFTER)] == ([0, 0] if made[1] == LAST else [1, 1])
    assert len(told(events, "question.asked")) == (2 if trigger == "after_chat" else 1)
    assert events[-1].kind == ("run.finished" if trigger == "after_chat" else "run.cancelled")


async def test_a_cancel_in_a_turn_has_its_hooks_run(tmp_path: Path) -> None:
    begun = asyncio.Event()

    async def stuck(task: Task) -> Answer:
        begun.set()
        await asyncio.Event().wait()
        return Answer("never")

    folder = hooked(
        tmp_path, EVERY, coded("after_chat", "    return context_variables['run_status']")
    )
    async with serving(make_world(stuck)) as runs:
        run = await runs.start(folder, user="u1", tenant="acme")
        await begun.wait()
        assert await runs.cancel(run, by="boss")
        events = [event async for event in runs.events(run)]
    assert calls(events) == [FIRST, BEFORE, AFTER, LAST]
    assert outcomes(events)[-1] == ("after_chat", "success", "cancelled")
