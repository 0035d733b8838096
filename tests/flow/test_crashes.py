"""Kill a process that has a flow anywhere; what comes after is as if nothing had happened."""

from typing import Any

import pytest

from tests.flow.trips import boss, travel
from tests.support.flows import tale, undone
from tests.support.plays import every
from weft.runtime.spec import Stop

pytestmark = pytest.mark.repeats


def cancelling(question: Any) -> Any:
    """Whoever is asked to approve wants the end instead."""
    return Stop("u1", "enough") if question.tool == "approval" else boss(question)


STEPS = ["plan", "loop[1]/draft", "loop[2]/draft", "fork.0/hotel", "fork.1/Pack", "pay", "send"]


@pytest.mark.parametrize(
    ("fails", "person", "end", "made_up"),
    [
        ("", boss, "run.finished", []),
        ("send", boss, "run.failed", STEPS),
        ("tell", boss, "run.finished", []),
        ("", cancelling, "run.cancelled", STEPS[:-2]),
    ],
)
async def test_killed_anywhere(fails: str, person: Any, end: str, made_up: list[str]) -> None:
    """The same end, the same log, each compensation once, the one completed last first."""
    whole = travel(fails, person)
    expected = await whole.lives.live()
    points = whole.lives.fuse.passed
    assert expected[-1].kind == end
    assert sorted(undone(expected)) == sorted(made_up)
    for kill in range(points):
        killed = travel(fails, person)
        events = await killed.lives.live(kill)
        assert tale(events) == tale(expected), f"killed at point {kill}"
        order = [each.place for each in every(events, "step.completed") if each.place in made_up]
        assert undone(events) == order[::-1] or "send" in undone(events)
        assert killed.done["price"] <= 2
