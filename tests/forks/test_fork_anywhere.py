"""Forked at any event, with the same answers and no call made, a run ends as it did before."""

from pathlib import Path

import pytest

from tests.golden import recording
from tests.support.forking import ForkingWorld
from turnloom.adapters.sqlite import SqliteStore
from turnloom.runtime.logic import codec

# Scenes that cannot be played so, each with the reason.
LEFT_OUT = {
    "clerks_chosen_by_what_is_known_of_them": "its next program continues the newest run: a fork",
}
SCENES = [name for name in recording.SCENES if name not in LEFT_OUT]

# Scenes of all three forms; all of them are forked by `make test-doors`.
FEW = [
    "a_flow_cancelled_in_a_fork",
    "a_flow_undone",
    "a_flow_with_approvals",
    "a_flow_with_nested_forks",
    "a_tool_on_a_board_asks",
    "a_tool_that_asks_twice_killed",
    "an_answer_decides_a_route",
    "an_interview_killed_three_times",
    "hooks_around_a_chat_killed",
    "lines_of_an_order_are_batched",
    "message_hooks_killed",
    "tools_side_by_side_killed",
    "tools_side_by_side_on_a_board",
    "what_agents_see_of_a_board",
]


@pytest.mark.parametrize("name", FEW)
async def test_a_fork_ends_as_the_run_did(name: str, tmp_path: Path) -> None:
    world = ForkingWorld()
    await recording.SCENES[name](world, tmp_path)
    assert world.forks


@pytest.mark.doors
@pytest.mark.parametrize("name", SCENES)
@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_every_scene_is_forked(name: str, kind: str, tmp_path: Path) -> None:
    world = ForkingWorld()
    if kind == "sqlite":
        world.store = SqliteStore(tmp_path / "runs.db", codec())
    await recording.SCENES[name](world, tmp_path)
