"""Paths in paths, as deep as they may be."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.flow.scenes import Work, flow_of, note
from turnloom import DefinitionError, Flow, Loom, Path

# How many paths the innermost one is in.
DEEPEST = 100


def branching(path: Path, number: int) -> Path:
    return Path().branch(lambda state: state.number, {0: path})


def forking(path: Path, number: int) -> Path:
    beside, join = (Path().then(rest, name=f"{each}_{number}") for each in ("beside", "join"))
    return Path().fork(path, beside, join=join)


def repeating(path: Path, number: int) -> Path:
    return Path().repeat_until(lambda state: True, path)


def handling(path: Path, number: int) -> Path:
    return Path().then(doomed, on_failure=path, recover=True)


async def rest(state: Work, ctx: Any) -> None:
    """Changes nothing."""


async def doomed(state: Work, ctx: Any) -> None:
    """Fails."""
    raise ValueError


def nested(around: Callable[[Path, int], Path], depth: int) -> Flow[Work]:
    """A flow with a step that is in so many paths."""
    path = Path(note("innermost"))
    for number in range(depth - 1):
        path = around(path, number)
    return flow_of(note("begin")).branch(lambda state: 0, {0: path}).finally_(note("end"))


@pytest.mark.parametrize("around", [branching, forking, repeating, handling])
async def test_the_deepest_path_is_checked_drawn_and_walked(app: Loom, around: Any) -> None:
    flow = nested(around, DEEPEST)
    assert "innermost" in flow.to_mermaid()
    assert (await app.run(flow)).state.notes == ["begin", "innermost", "end"]


@pytest.mark.parametrize("around", [branching, forking, repeating, handling])
@pytest.mark.parametrize("deeper", [1, 1000])
def test_a_path_that_is_deeper_is_told(around: Any, deeper: int) -> None:
    with pytest.raises(DefinitionError) as refused:
        nested(around, DEEPEST + deeper).to_mermaid()
    told = [each for each in refused.value.diagnostics if each.severity == "error"]
    assert {each.code for each in told} == {"W129"} and str(DEEPEST) in told[0].message
