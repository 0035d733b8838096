"""Forked at any event, with the same answers and no call made, a run ends as it did before."""

from pathlib import Path

import pytest

from tests.golden import recording
from tests.support.forking import ForkingWorld
from turnloom.adapters.sqlite import SqliteStore
from turnloom.runtime.logic import codec

# Scenes whose runs do not depend on their log and their answers alone, each with the reason.
LEFT_OUT = {
    "engines_in_a_row_fail_and_are_tried_again": "its engines count their calls",
    "agents_called_directly": "a turn is tried again from outside",
    "runs_cancelled_during_turns": "a cancellation comes from outside",
    "one_of_two_is_chosen_on_a_board": "a selection learns",
    "a_correlation_goes_on": "artifacts come from outside",
    "a_garden_killed": "time passes in another way",
    "a_question_that_expires": "time passes in another way",
    "objects_made_again_after_a_kill": "objects of a process are not on record",
    "clerks_chosen_by_what_is_known_of_them": "a selection learns",
    "a_run_cancelled_while_it_waits": "a cancellation comes from outside",
    "a_run_cancelled_in_a_turn": "a cancellation comes from outside",
    "a_flow_of_retries": "its steps move the clock of the loop",
    "a_flow_in_circles": "several programs, each with its flow",
    "a_flow_cancelled_while_it_waits": "a cancellation comes from outside",
    "a_flow_cancelled_in_a_fork": "a cancellation comes from outside",
}
SCENES = [name for name in recording.SCENES if name not in LEFT_OUT]

# Scenes of all three forms; all of them are forked by `make test-doors`.
FEW = [
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


def test_scenes_that_are_left_out_exist() -> None:
    assert LEFT_OUT.keys() | {*FEW} <= recording.SCENES.keys()


@pytest.mark.parametrize("name", FEW)
async def test_a_fork_ends_as_the_run_did(name: str, tmp_path: Path) -> None:
    await recording.SCENES[name](ForkingWorld(), tmp_path)


@pytest.mark.doors
@pytest.mark.parametrize("name", SCENES)
@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_every_scene_is_forked(name: str, kind: str, tmp_path: Path) -> None:
    world = ForkingWorld()
    if kind == "sqlite":
        world.store = SqliteStore(tmp_path / "runs.db", codec())
    await recording.SCENES[name](world, tmp_path)
