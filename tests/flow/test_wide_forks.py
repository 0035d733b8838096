"""What a path of a fork costs does not grow with how many there are beside it."""

import sys
from typing import Any

from tests.flow.notes import Notes, flow, note, results
from tests.support.flows import FlowLives
from turnloom import Flow, Path
from turnloom.log.spec import Event
from turnloom.runtime.logic import evolve, fresh


class Counter:
    """Counts the calls that are made while it is open."""

    def __init__(self) -> None:
        self.calls = 0

    def __enter__(self) -> "Counter":
        sys.setprofile(self._count)
        return self

    def __exit__(self, *error: object) -> None:
        sys.setprofile(None)

    def _count(self, frame: Any, event: str, arg: Any) -> None:
        self.calls += event in ("call", "c_call")


def wide(paths: int) -> Flow[Notes]:
    """A fork of so many paths."""
    steps = [Path().then(note("path"), name=f"path_{n}") for n in range(paths)]
    return flow().fork(*steps, join=results, name="fork").finally_(note("end"))


def deciding(lives: FlowLives, events: list[Event]) -> int:
    """How many calls it takes to decide what comes next after each event."""
    state = fresh(events[0].run, lives.workflow)
    with Counter() as counter:
        for event in events:
            evolve(lives.workflow, state, event)
            lives.workflow.decide(state)
    return counter.calls


async def test_to_decide_costs_the_same_for_each_path() -> None:
    calls: dict[int, int] = {}
    for paths in (50, 400):
        lives = FlowLives(wide(paths), Notes())
        events = await lives.live()
        assert events[-1].kind == "run.finished"
        calls[paths] = deciding(lives, events)
    assert calls[400] < 9 * calls[50], calls


def test_to_check_a_flow_costs_the_same_for_each_path() -> None:
    calls: dict[int, int] = {}
    for paths in (50, 400):
        built = wide(paths)
        with Counter() as counter:
            built.check()
        calls[paths] = counter.calls
    assert calls[400] < 9 * calls[50], calls
