"""A run that is cancelled: in a turn, in a hook, while it waits; its hooks still have their say."""

import asyncio
from pathlib import Path

import pytest

from tests.support import stage
from tests.support.hooked import LINES, TRIGGERS, calls, hook, hooked, outcomes, told
from tests.support.plays import serving, until
from tests.support.programs import make_world
from turnloom import Answer, Engine, Event, Run, Task
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


def ends(events: list[Event]) -> list[tuple[str, str]]:
    """How hooks ended: which, how."""
    return [end[:2] for end in outcomes(events)]


async def cancel_in_hook(folder: str) -> list[Event]:
    """The log of a run that is cancelled when a hook says that it hangs."""
    stage.kept["hangs"] = asyncio.Event()
    async with serving(make_world(ScriptedEngine(LINES))) as app:
        run = await app.start(folder, user_id="u1")
        answering = asyncio.create_task(answered(run, "Yes."))
        await stage.kept["hangs"].wait()
        assert await run.cancel(by="boss")
        await answering
        return list(await app.history.events(run.id))


async def answered(run: Run, value: str) -> None:
    """Give the same answer to every question of a run."""
    async for event in run.events():
        if event.kind == "run.paused":
            await run.answer(event.data.waiting_for, value)


@pytest.mark.parametrize("body", [HANGS, DEAF])
async def test_a_cancel_in_a_hook_before_something_ends_it(body: str, tmp_path: Path) -> None:
    """What it prepared for does not come; what comes afterwards does."""
    events = await cancel_in_hook(hooked(tmp_path / "chat", EVERY, coded("before_chat", body)))
    assert calls(events) == [FIRST, LAST]
    assert ends(events) == [("before_chat", "Cancelled"), ("after_chat", "success")]
    assert events[-1].kind == "run.cancelled"

    stage.clear()
    events = await cancel_in_hook(hooked(tmp_path / "agent", EVERY, coded("before_agent", body)))
    assert calls(events) == [FIRST, BEFORE, AFTER, LAST]
    assert ends(events)[1] == ("before_agent", "Cancelled")
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
    assert ends(events) == [
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
    async with serving(make_world(fail)) as app:
        run = await app.start(folder, user_id="u1")
        await stage.kept["hangs"].wait()
        assert await run.cancel(by="boss")
        events = [event async for event in run.events()]
    assert outcomes(events)[-1] == ("after_chat", "success", "failed")
    assert events[-1].kind == "run.failed"


async def cancel_waiting(folder: str, engine: Engine) -> list[Event]:
    """The log of a run that is cancelled while a hook waits for a person."""
    async with serving(make_world(engine)) as app:
        run = await app.start(folder, user_id="u1")
        position = 0
        while True:
            paused = await until(run, "run.paused", position)
            if "ask.0" in paused.data.waiting_for:
                break
            await run.answer(paused.data.waiting_for, "Yes.")
            position = paused.seq
        assert await run.cancel(by="boss")
        return [event async for event in run.events()]


ALWAYS_ASKS = "async def {0}(context_variables):\n    return await use_ui_tool('form')\n"


@pytest.mark.parametrize("trigger", TRIGGERS)
async def test_a_cancel_while_a_hook_waits_for_a_person(trigger: str, tmp_path: Path) -> None:
    code = coded(trigger, "    pass") + ALWAYS_ASKS.format(trigger)
    events = await cancel_waiting(hooked(tmp_path, EVERY, code), ScriptedEngine(LINES))
    before = trigger.startswith("before")
    assert (trigger, "Cancelled" if before else "UsageError") in ends(events)
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
    async with serving(make_world(stuck)) as app:
        run = await app.start(folder, user_id="u1")
        await begun.wait()
        assert await run.cancel(by="boss")
        events = [event async for event in run.events()]
    assert calls(events) == [FIRST, BEFORE, AFTER, LAST]
    assert outcomes(events)[-1] == ("after_chat", "success", "cancelled")
