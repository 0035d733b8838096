"""Forks whose paths fail: the join is reached or the run fails; it never hangs."""

import asyncio
from typing import Any

import pytest

from tests.flow.notes import Notes, bad, done, flow, log_of, note, results, undo
from tests.support.flows import FlowLives, Hangs, nobody, undone
from tests.support.plays import every, last, only
from turnloom import Path, Retry, use_ui_tool
from turnloom.errors import QuestionExpired
from turnloom.testing import Fuse


async def forever(state: Notes, ctx: Any) -> Any:
    """Never ends by itself."""
    await asyncio.Event().wait()


async def asks(state: Notes, ctx: Any) -> Any:
    """Asks a person."""
    return {"said": [await use_ui_tool("colour", {"prompt": "Which?"})]}


async def test_a_path_with_a_handler_is_joined_as_recovered() -> None:
    failing = Path().then(note("one")).then(bad()).on_failure(Path(note("rescue")))
    events = await log_of(flow().fork(failing, Path(note("two")), join=results))
    assert events[-1].kind == "run.finished"
    assert [each.status for each in only(events, "fork.joined").paths] == ["recovered", "completed"]
    assert last(events, "step.completed").update == {
        "said": ["fork.0 recovered", "fork.1 completed"]
    }


async def test_a_path_whose_handler_fails() -> None:
    failing = Path().then(bad()).on_failure(Path(bad("worse")))
    events = await log_of(flow().fork(failing, Path(note("two")), join=results))
    assert events[-1].kind == "run.failed"
    assert only(events, "flow.stopped").error == "step bad failed"
    assert undone(events) == ["first"]


async def test_a_path_without_a_handler() -> None:
    """Its siblings are stopped; what they did is made up for, what they did not is not."""
    sibling = done("two").then(forever, compensate=undo("forever"))
    failing = Path().then(note("one")).then(bad(), compensate=undo("bad"))
    events = await log_of(flow().fork(failing, sibling, join=results))
    assert events[-1].kind == "run.failed"
    assert only(events, "step.skipped").place == "fork.1/forever"
    assert undone(events) == ["fork.0/bad", "fork.1/two", "first"]


async def test_both_paths_fail_at_once() -> None:
    """Each of the two may have done something, and is made up for."""
    paths = [Path().then(bad(f"bad{n}"), compensate=undo(f"bad{n}")) for n in range(2)]
    events = await log_of(flow().fork(*paths, join=results))
    assert events[-1].kind == "run.failed"
    assert sorted(undone(events)) == ["first", "fork.0/bad0", "fork.1/bad1"]
    assert undone(events)[-1] == "first"


@pytest.mark.parametrize("waiting", [Path().await_approval("boss"), Path().then(asks)])
async def test_a_path_waits_for_a_person_while_its_sibling_fails(waiting: Path) -> None:
    """Nobody waits for the answer any more, and one that comes changes nothing."""
    failing = Path().then(bad(), retry=Retry(1, delay=5, jitter=False))
    lives = FlowLives(flow().fork(waiting, failing, join=results), Notes())
    events = await lives.live()
    assert events[-1].kind == "run.failed"
    assert undone(events) == ["first"]
    question = only(events, "question.asked").question
    assert only(events, "question.expired").question == question
    with pytest.raises(QuestionExpired):
        await lives.answer(events[0].run, question, "approve")
    assert await lives.log(events[0].run) == events


async def test_a_path_waits_for_its_next_attempt_while_its_sibling_fails() -> None:
    """The run does not wait for the attempt."""
    waiting = Path().then(bad("flaky"), retry=Retry(3, delay=50, jitter=False))
    failing = Path().then(bad(), retry=Retry(1, delay=5, jitter=False))
    lives = FlowLives(flow().fork(waiting, failing, join=results), Notes())
    events = await lives.live()
    assert events[-1].kind == "run.failed"
    assert only(events, "step.skipped").step == "flaky"
    assert (events[-1].at - events[0].at).total_seconds() == 5


async def test_nested_forks() -> None:
    """What fails inside is handled inside, or else by the path that it is in."""
    inner = Path().fork(Path(note("a")), Path().then(bad()), join=note("inner"))
    rescued = Path(note("before"))
    rescued.fork(Path(note("a")), Path().then(bad()).on_failure([note("r")]), join=note("inner"))
    events = await log_of(flow().fork(rescued, Path(note("b")), join=results))
    assert events[-1].kind == "run.finished"
    events = await log_of(flow().fork(inner, Path(forever), join=results))
    assert events[-1].kind == "run.failed"
    assert undone(events) == ["first"]


async def test_a_path_handles_what_fails_in_a_fork_inside_it() -> None:
    outer = done("before").fork(
        done("a").then(forever),
        Path(note("c"), note("d"), bad()),
        join=note("inner"),
        name="inside",
    )
    outer.on_failure(Path(note("rescue")))
    events = await log_of(flow().fork(outer, Path(note("b")), join=results))
    assert events[-1].kind == "run.finished"
    assert only(events, "step.skipped").step == "forever"
    assert last(events, "step.completed").update["said"] == ["fork.0 recovered", "fork.1 completed"]
    assert undone(events) == []


async def test_two_paths_ask_at_once() -> None:
    """All are asked at once, and everybody is answered in the end."""
    asking = flow().fork(
        Path(asks), Path().then(asks, name="more"), Path().await_approval("boss"), join=results
    )
    events = await log_of(asking, lambda asked: "approve" if asked.tool == "approval" else "red")
    assert events[-1].kind == "run.finished"
    kinds = [event.kind for event in events if event.kind.startswith("question.")]
    assert kinds == ["question.asked"] * 3 + ["question.answered"] * 3


@pytest.mark.parametrize("waiting", [Path().await_approval("boss"), Path().then(asks)])
async def test_a_path_that_is_given_up_asks_nothing_any_more(waiting: Path) -> None:
    """Its question is closed, and another one, asked beside it, stays open."""
    failing = Path().then(bad(), retry=Retry(1, delay=5, jitter=False))
    inside = Path().fork(waiting, failing, join=note("inner")).on_failure(Path(note("rescue")))
    patient = Path().await_approval("ann", name="patient")
    both = flow().fork(inside, patient, join=results)
    events = await log_of(both, lambda asked: "approve" if asked.to == "ann" else None)
    assert events[-1].kind == "run.finished"
    (kept,) = [each for each in every(events, "question.asked") if each.to == "ann"]
    assert only(events, "question.answered").question == kept.question
    assert only(events, "question.expired").question != kept.question


async def test_a_failure_path_may_fork_and_ask() -> None:
    """Also where it fails itself, or nobody answers: the run ends."""
    ends = {"approve": "fine", "reject": "ApprovalRejected"}
    for answer in ends:
        failing = (
            flow()
            .then(bad())
            .on_failure(
                Path().fork(Path(note("a")), Path().await_approval("boss"), join=note("join"))
            )
        )
        events = await log_of(failing, lambda asked, said=answer: said)
        assert events[-1].kind == "run.failed"
        assert undone(events) == ["first"]
        joined = [each.step for each in every(events, "step.completed") if each.step == "join"]
        assert len(joined) == (answer == "approve")


async def test_the_end_of_a_failing_failure_path_stops_its_siblings() -> None:
    failing = (
        flow()
        .then(bad())
        .on_failure(Path().fork(Path(forever), Path(bad("worse")), join=note("join")))
    )
    events = await log_of(failing)
    assert events[-1].kind == "run.failed"
    assert only(events, "step.skipped").step == "forever"


async def test_a_run_waits_once_all_its_paths_do() -> None:
    """Also where one waits to ask until another one is answered."""
    lives = FlowLives(
        flow().fork(Path(asks), Path().then(asks, name="more"), join=results), Notes(), nobody
    )
    run = await lives.begin()
    with pytest.raises(Hangs):
        await lives.life(run, Fuse())
    assert [
        event.data.waiting_for for event in await lives.log(run) if event.kind == "run.paused"
    ] == ["s2/ask.0"]


async def test_a_sibling_is_stopped_before_code_says_how_the_flow_continues() -> None:
    """What is cut off completes nothing, however long a condition takes after it."""
    gate = asyncio.Event()

    async def slow(state: Notes, ctx: Any) -> Any:
        await gate.wait()
        return {"said": ["too late"]}

    async def opens(state: Notes) -> bool:
        gate.set()
        for _ in range(50):
            await asyncio.sleep(0)
        return True

    inner = Path(note("before")).fork(Path(slow), Path(bad()), join=note("inner"))
    inner.on_failure(Path().branch(opens, {True: note("rescue"), False: note("never")}))
    events = await log_of(flow().fork(inner, Path(note("b")), join=results))
    assert events[-1].kind == "run.finished"
    assert [each.step for each in every(events, "step.skipped")] == ["slow"]
    assert "too late" not in str([each.update for each in every(events, "step.completed")])


@pytest.mark.parametrize("fails", [False, True])
async def test_a_step_ends_just_after_its_fork_failed(fails: bool) -> None:
    """Its result does not count; what it did is made up for when the run fails."""
    for waits in range(6):
        failed = asyncio.Event()

        async def late(state: Notes, ctx: Any, waits: int = waits) -> Any:
            await failed.wait()  # noqa: B023 - it runs before the next iteration
            for _ in range(waits):
                await asyncio.sleep(0)
            if fails:
                raise ValueError("too late")
            return {"said": ["late"]}

        async def breaks(state: Notes, ctx: Any) -> Any:
            failed.set()  # noqa: B023
            raise ValueError("broken")

        late.__name__, breaks.__name__ = "late", "breaks"
        paths = Path().then(late, compensate=undo("late")), Path(breaks)
        broken = Path(note("one")).fork(*paths, join=note("never"), name="broken")
        broken.on_failure(Path(note("rescue")))
        events = await log_of(flow().fork(broken, Path(note("two")), join=bad()))
        assert events[-1].kind == "run.failed" and only(events, "flow.stopped")
        is_late = any(each.step == "late" for each in every(events, "step.completed"))
        assert ("fork.0/broken.0/late" in undone(events)) == is_late
