"""Kill a process that has a flow anywhere; what comes after is as if nothing had happened."""

from typing import Any

import pytest

from tests.flow.notes import Notes, bad, count, done, flow, note, results, undo
from tests.flow.trips import again, boss, travel
from tests.support.flows import Cancel, FlowLives, tale, undone
from tests.support.plays import every
from turnloom import Flow, Path, Retry, escalate_to
from turnloom.adapters.memory import MemoryStore
from turnloom.log.spec import RunKey
from turnloom.runtime.logic import codec

pytestmark = pytest.mark.repeats

# What can be made up for, in the order in which it is done but for the paths of the fork.
STEPS = ["plan", "loop[1]/draft", "loop[2]/draft", "fork.0/hotel", "fork.1/Pack", "pay", "send"]


def cancelling(question: Any) -> Any:
    """Whoever is asked to approve wants the end instead."""
    return Cancel("u1", "enough") if question.tool == "approval" else boss(question)


@pytest.mark.parametrize(
    ("fails", "person", "end", "made_up"),
    [
        ((), boss, "run.finished", []),
        (("send", "undo_hotel", "file"), boss, "run.failed", STEPS),
        ((), cancelling, "run.cancelled", STEPS[:-2]),
    ],
    ids=["finished", "failed, also in compensation and handler", "cancelled while parked"],
)
async def test_killed_anywhere(fails: Any, person: Any, end: str, made_up: list[str]) -> None:
    """The same end, the same log, each compensation once, the one completed last first.

    Up to the approval all journeys are alike, so one of them is killed there.
    """
    asked: list[int] = []

    def noting(question: Any) -> Any:
        asked.append(trip.lives.fuse.passed)
        return person(question)

    trip = travel(fails, noting)
    expected = await trip.lives.live()
    assert expected[-1].kind == end
    assert sorted(undone(expected)) == sorted(made_up)
    for kill in range(0 if fails else asked[-1] - 1, trip.lives.fuse.passed):
        events = await again(trip, person).lives.live(kill)
        assert tale(events) == tale(expected), f"killed at point {kill}"
        completed = [fact.place for fact in every(events, "step.completed")]
        order = [place for place in completed if place in made_up]
        assert undone(events) == [*made_up[len(order) :], *reversed(order)]
        twice = [name for name, times in trip.done.items() if times > 1]
        assert len(twice) <= 2, "more than what was cut off in the two paths was done again"


async def test_killed_again_and_again() -> None:
    """A process that never lives long brings the run to its end all the same."""
    trip = travel(("send",))
    expected = tale(await trip.lives.live())
    for points in (3, 4, 5, 6):
        assert tale(await again(trip).lives.live(*[points] * 60)) == expected


def patient() -> Flow[Notes]:
    """Asks one person, then, when that one does not answer, another one who defers at first."""
    chief = escalate_to("chief", timeout=60)
    asking = flow().await_approval("boss", timeout=60, on_timeout=chief, name="ok")
    return asking.then(note("paid"), compensate=undo("paid")).then(bad(), on_failure=[note("hm")])


def deferring(question: Any) -> Any:
    """The chief wants more time, once."""
    if question.to == "boss":
        return None
    return "defer" if question.id.endswith("#2") else "approve"


def nested() -> Flow[Notes]:
    """A fork in a fork fails, which is handled around it; then a loop in which a step recovers."""
    inner = done("a").fork(Path(note("b")), Path(note("c"), note("d"), bad()), join=note("inner"))
    built = flow().fork(inner.on_failure([note("saved")]), done("e"), join=results)
    recovering = Path(count).then(bad("weak"), retry=1, on_failure=[note("caught")], recover=True)
    return built.repeat_until(lambda state: state.n == 2, recovering, max_iterations=3)


def late() -> Flow[Notes]:
    """A run that takes too long while it waits."""
    built = flow(timeout=100).then(bad("flaky"), retry=Retry(3, delay=70, jitter=False))
    return built.on_failure([note("told")])


@pytest.mark.parametrize(
    ("made", "person", "end"),
    [
        (patient, deferring, "run.failed"),
        (nested, deferring, "run.finished"),
        (late, deferring, "run.failed"),
    ],
)
async def test_killed_at_every_append(made: Any, person: Any, end: str) -> None:
    built = made()
    whole = FlowLives(built, Notes(), person)
    expected = await whole.live()
    assert expected[-1].kind == end
    for kill in range(whole.fuse.passed):
        events = await FlowLives(built, Notes(), person).live(kill)
        assert tale(events) == tale(expected), f"killed at point {kill}"
        assert undone(events) == undone(expected)


def long() -> Flow[Notes]:
    """So many passes that the state is kept aside, with a fork that is open, before it is asked."""
    body = Path(count).fork(done("a"), Path(note("b")), join=note("both"))
    built = flow().repeat_until(lambda state: state.n == 100, body, max_iterations=100)
    asking = done("left").await_approval("boss", name="ok").then(note("paid"))
    built.fork(asking, done("right"), join=results)
    again = Path().then(bad("flaky"), retry=Retry(1, delay=5, jitter=False)).then(note("never"))
    built.fork(again.on_failure([note("saved")]), done("beside"), join=note("end"), name="second")
    return built.then(bad(), on_failure=[note("hm")])


async def test_a_long_run_killed_after_its_state_was_kept() -> None:
    """What is read back is all that a run knows: of its loops, open forks, attempts and undoing."""
    built = long()
    whole = FlowLives(built, Notes(), lambda question: "approve")
    expected = await whole.live()
    outcome = await whole.outcome(expected[0].run)
    asked = next(event.seq for event in expected if event.kind == "question.asked")
    assert asked > 1000 and len(undone(expected)) == 104
    undoing = whole.fuse.passed - 4 * len(undone(expected))
    for kill in range(undoing - 50, undoing + 10, 10):
        store = MemoryStore(codec())
        lives = FlowLives(built, Notes(), lambda question: "approve", store)
        events = await lives.live(kill)
        assert await store.snapshots.load(RunKey(events[0].data.tenant, events[0].run))
        assert tale(events) == tale(expected), f"killed at point {kill}"
        assert undone(events) == undone(expected)
        assert (await lives.outcome(events[0].run)).state == outcome.state
