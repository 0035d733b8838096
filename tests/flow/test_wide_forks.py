"""What a path of a fork costs does not grow with how many there are beside it."""

import sys
from typing import Any

from tests.flow.notes import Notes, flow, note, results
from tests.support.world import World
from turnloom import Flow, Path


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


async def test_a_run_costs_the_same_for_each_path() -> None:
    calls: dict[int, int] = {}
    for paths in (50, 200):
        async with World().app() as app:
            with Counter() as counter:
                outcome = await app.run(wide(paths), Notes())
        assert len(outcome.state.said) == 2 * paths + 2
        calls[paths] = counter.calls
    assert calls[200] < 4.5 * calls[50], calls


def test_to_check_a_flow_costs_the_same_for_each_path() -> None:
    calls: dict[int, int] = {}
    for paths in (50, 200):
        built = wide(paths)
        with Counter() as counter:
            built.check()
        calls[paths] = counter.calls
    assert calls[200] < 4.5 * calls[50], calls
