"""Whatever a flow consists of and whatever fails in it: what holds of every run."""

from collections import Counter
from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.flow.notes import Notes
from tests.flow.trees import Grown, grow, lines
from tests.support.flows import FlowLives, undone
from tests.support.plays import every
from turnloom.log.events import ENDS
from turnloom.log.spec import Event

OVER = ("step.completed", "step.failed", "step.skipped", "step.compensated")


def check_steps(events: Sequence[Event]) -> None:
    """Whatever begins ends, once."""
    begun = {fact.number for fact in every(events, "step.started")}
    over = Counter(fact.number for kind in OVER for fact in every(events, kind) if fact.number)
    assert over == Counter(begun)
    opened = {fact.place for fact in every(events, "fork.opened")}
    for place in (fact.place for fact in every(events, "fork.joined")):
        assert place in opened


def check_undoing(events: Sequence[Event], grown: Grown) -> None:
    """What failed for good is made up for first, then what was completed, the last one first."""
    stops = [event.seq for event in events if event.kind == "flow.stopped"]
    if not stops:
        assert undone(events) == []
        return
    [stop] = stops
    completed = [
        event.data.place
        for event in events
        if event.kind == "step.completed" and event.seq < stop and _can_be(event, grown)
    ]
    made_up = undone(events)
    own = made_up[: len(made_up) - len(completed)]
    assert made_up[len(own) :] == completed[::-1]
    failed = {fact.place for fact in every(events, "step.failed")}
    assert set(own) <= failed
    assert len({*made_up}) == len(made_up)


def _can_be(event: Event, grown: Grown) -> bool:
    return event.data.step in grown.compensated


def check_loops(events: Sequence[Event], grown: Grown) -> None:
    """No loop is walked more often than it may be, and each says why it ended."""
    for fact in every(events, "loop.passed"):
        assert fact.number <= grown.most[fact.loop]
    for fact in every(events, "loop.ended"):
        passes = [each for each in every(events, "loop.passed") if each.place == fact.place]
        assert [each.number for each in passes] == [*range(1, fact.passes + 1)]
        assert (fact.reason == "max_iterations") == (not passes[-1].held)


async def check_outcome(lives: FlowLives, events: Sequence[Event]) -> None:
    """A program that reads the log knows how the run ended, and what failed if it did."""
    outcome = await lives.outcome(events[0].run)
    assert f"run.{outcome.status}" == events[-1].kind
    assert (outcome.failure is None) == (outcome.status == "finished")


@settings(max_examples=60, deadline=None)
@given(lines, st.none() | lines, st.lists(st.integers(0, 60), max_size=2))
async def test_every_run_of_every_flow(
    main: tuple[object, ...],
    failure: tuple[object, ...] | None,
    kills: list[int],
) -> None:
    grown = grow(main, failure)
    lives = FlowLives(grown.flow, Notes(), grown.answer)
    events = await lives.live(*kills)
    assert events[-1].kind in ENDS
    check_steps(events)
    check_undoing(events, grown)
    check_loops(events, grown)
    await check_outcome(lives, events)
