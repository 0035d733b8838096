"""Approvals and timeouts over restarts: what is late, passed on, or asked again."""

import asyncio
import math
import threading
from contextlib import aclosing
from datetime import timedelta
from typing import Any

import pytest

from tests.flow.notes import Notes, bad, flow, log_of, note, undo
from tests.support.flows import FlowLives, Hangs, nobody, undone
from tests.support.plays import every, last, only
from turnloom import Loom, Path, Retry, escalate_to
from turnloom.errors import QuestionExpired, UsageError
from turnloom.testing import Fuse


def patient(**settings: Any) -> FlowLives:
    """Lives of a flow that asks the boss."""
    asking = flow().await_approval("boss", name="ok", **settings)
    return FlowLives(asking.then(note("paid"), compensate=undo("paid")), Notes(), nobody)


async def restarted(lives: FlowLives, run: str) -> None:
    """Let another process look at the run, which waits."""
    with pytest.raises(Hangs):
        await lives.life(run, Fuse())


async def test_an_approval_deferred_is_asked_again() -> None:
    """As often as it takes, by whichever process; what it decides in the end counts."""
    lives = patient()
    run = await lives.begin()
    for _ in range(2):
        await restarted(lives, run)
        await lives.answer(run, None, {"decision": "defer"})
    await restarted(lives, run)
    await lives.answer(run, None, {"decision": "approve", "instructions": "hurry"})
    events = await lives.life(run, Fuse())
    assert events[-1].kind == "run.finished"
    decided = every(events, "approval.decided")
    assert [each.outcome for each in decided] == ["deferred", "deferred", "approved"]
    assert decided[-1].instructions == "hurry"
    asked = [each.question for each in every(events, "question.asked")]
    assert asked == ["approval/ok#1", "approval/ok#2", "approval/ok#3"]


async def test_deferring_does_not_win_time() -> None:
    lives = patient(timeout=60)
    run = await lives.begin()
    await lives.rest(run)
    lives.clock.advance(timedelta(seconds=50))
    await lives.answer(run, None, "defer")
    events = await lives.life(run, Fuse())
    assert [each.outcome for each in every(events, "approval.decided")] == ["deferred", "expired"]
    assert (events[-1].at - events[0].at).total_seconds() == 60


async def test_an_approval_that_expires_takes_its_path() -> None:
    """A late answer changes nothing."""
    lives = patient(timeout=60, on_timeout=Path(note("late")))
    events = await lives.live()
    assert events[-1].kind == "run.finished"
    assert [fact.step for fact in every(events, "step.completed")] == ["first", "late", "paid"]
    for answer in ("approve", "reject"):
        with pytest.raises(QuestionExpired):
            await lives.answer(events[0].run, "approval/ok#1", answer)
    assert await lives.log(events[0].run) == events


async def test_an_approval_that_expires_without_a_path_fails_the_run() -> None:
    events = await patient(timeout=60).live()
    assert events[-1].kind == "run.failed"
    assert undone(events) == ["first"]
    assert "ApprovalExpired" in events[-1].data.message


async def test_an_answer_after_its_time_is_late_also_if_nobody_drove_the_run() -> None:
    lives = patient(timeout=60, on_timeout=Path(note("late")))
    run = await lives.begin()
    await lives.rest(run)
    lives.clock.advance(timedelta(seconds=61))
    with pytest.raises(QuestionExpired):
        await lives.leave_answer(run, None, "approve")
    events = await lives.life(run, Fuse())
    assert [fact.outcome for fact in every(events, "approval.decided")] == ["expired"]


async def test_an_approval_is_passed_on() -> None:
    """The next one is asked with a time of their own; to the former, nobody listens."""
    then = escalate_to("chief", timeout=30, on_timeout=escalate_to("board", options=["yes", "no"]))
    lives = patient(timeout=60, on_timeout=then)
    run = await lives.begin()
    await restarted(lives, run)
    asked = every(await lives.log(run), "question.asked")
    assert [(each.question, each.to) for each in asked] == [
        ("approval/ok#1", "boss"),
        ("approval/ok#2", "chief"),
        ("approval/ok#3", "board"),
    ]
    assert (asked[1].due - asked[0].due).total_seconds() == 30
    for question, problem in (("approval/ok#1", QuestionExpired), ("approval/no#1", UsageError)):
        with pytest.raises(problem):
            await lives.answer(run, question, "approve")
    with pytest.raises(UsageError):
        await lives.answer(run, None, "approve")
    await lives.answer(run, None, "yes")
    events = await lives.life(run, Fuse())
    decided = last(events, "approval.decided")
    assert (decided.approver, decided.outcome, decided.option) == ("board", "approved", "yes")


async def test_a_rejection_takes_its_path() -> None:
    lives = patient(on_rejection=Path(note("sorry")).complete())
    run = await lives.begin()
    await restarted(lives, run)
    await lives.answer(run, None, "reject")
    events = await lives.life(run, Fuse())
    assert events[-1].kind == "run.finished"
    assert last(events, "step.completed").step == "sorry"


async def test_an_answer_is_given_once() -> None:
    lives = patient()
    run = await lives.begin()
    await restarted(lives, run)
    await lives.answer(run, None, "approve")
    with pytest.raises(UsageError):
        await lives.answer(run, None, "reject")
    await lives.answer(run, "approval/ok#1", "reject")
    events = await lives.life(run, Fuse())
    assert only(events, "approval.decided").outcome == "approved"


@pytest.mark.parametrize("driven", [True, False])
async def test_a_run_takes_too_long(driven: bool) -> None:
    """It is made up for, also if no process lived when its time was over."""
    waiting = flow(timeout=100).await_approval("boss").then(note("paid"))
    lives = FlowLives(waiting.on_failure(Path(note("told"))), Notes(), nobody)
    run = await lives.begin()
    if driven:
        await lives.rest(run)
    lives.clock.advance(timedelta(seconds=101))
    events = await lives.life(run, Fuse())
    assert events[-1].kind == "run.failed"
    assert only(events, "flow.stopped").cause == "timed out"
    completed = [fact.step for fact in every(events, "step.completed")]
    assert completed == (["first", "told"] if driven else ["told"])
    assert undone(events) == (["first"] if driven else [])


async def forever(state: Notes, ctx: Any) -> Any:
    """Never ends by itself."""
    await asyncio.Event().wait()


async def test_a_run_is_cancelled_while_a_step_is_taken() -> None:
    """What was done is made up for; what handles failures is not asked."""
    async with Loom(store="memory") as app:
        asked = flow().then(forever, compensate=undo("forever")).on_failure(Path(note("told")))
        run = await app.start(asked, Notes())
        async for event in run.events():
            if event.kind == "step.started" and event.data.step == "forever":
                assert await run.cancel(reason="enough")
        events = await app.history.events(run.id)
    assert events[-1].kind == "run.cancelled"
    assert undone(events) == ["first"]
    assert [fact.step for fact in every(events, "step.completed")] == ["first"]


class Stuck:
    """A thread that ends when it is let go, and not before."""

    def __init__(self) -> None:
        self._held = threading.Event()
        self._began = 0
        self._ended = threading.Semaphore(0)

    def run(self, state: Notes, ctx: Any) -> Any:
        self._began += 1
        self._held.wait(60)
        self._ended.release()
        return {"said": ["late"]}

    async def end(self) -> None:
        """Let the threads end that began in time."""
        self._held.set()
        for _ in range(self._began):
            assert await asyncio.to_thread(self._ended.acquire, timeout=60)


async def stubborn(state: Notes, ctx: Any) -> Any:
    """Goes on although it is to stop."""
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        await ctx.once("late", lambda: 1)
    return {"said": ["late"]}


@pytest.mark.parametrize("late", [Stuck(), stubborn])
async def test_the_late_result_of_a_step_changes_nothing(late: Any) -> None:
    timed = flow().then(late, timeout=0.05, retry=1, on_failure=Path(note("caught")), recover=True)
    async with Loom(store="memory") as app:
        outcome = await app.run(timed.then(note("after")), Notes())
        assert outcome.state.said == ["first", "caught", "after"]
        events = await app.history.events(outcome.run_id)
        assert [fact.attempt for fact in every(events, "step.retried")] == [1]
        assert only(events, "step.failed").error == "TimeoutError"
        if isinstance(late, Stuck):
            await late.end()
        await app.run(flow(), Notes())  # the app works on after what came late
        assert await app.history.events(outcome.run_id) == events


async def test_waiting_for_a_person_is_not_taking_time() -> None:
    """Neither the timeout of a step nor the order of its attempts minds a restart."""
    events = await log_of(flow().then(note("quick"), timeout=5, retry=2).await_approval("b"), yes)
    assert events[-1].kind == "run.finished"


def yes(question: Any) -> Any:
    """Whoever approves of everything."""
    return "approve"


@pytest.mark.parametrize("seconds", [1e12, 1e300, math.inf])
async def test_what_is_given_longer_than_there_are_dates_is_given_for_ever(seconds: float) -> None:
    asks = flow(timeout=seconds).then(note("known"), cache=seconds, timeout=seconds)
    async with Loom(store="memory") as app:
        outcome = await app.run(asks.await_approval("boss", timeout=seconds), Notes())
        assert outcome.status == "waiting"
        run = await app.resume(outcome.run_id)
        assert outcome.question is not None
        await run.answer(outcome.question.id, "approve", user_id="boss")
        assert (await run.outcome()).status == "finished"


async def test_an_attempt_may_have_to_wait_for_ever() -> None:
    again = flow().then(bad("flaky"), retry=Retry(1, delay=1e300, max_delay=math.inf))
    async with Loom(store="memory") as app:
        run = await app.start(again, Notes())
        async with asyncio.timeout(20), aclosing(run.events()) as events:
            while (await anext(events)).kind != "run.paused":
                pass
        await run.cancel()
        assert (await run.outcome()).status == "cancelled"
