"""Runs of all three forms go as they went when their golden logs were made."""

import json
import re
from pathlib import Path

import pytest
from anyio import to_thread

from tests.golden.allowed import without_allowed
from tests.golden.paths import Plain, paths
from tests.golden.recording import LOGS, SCENES, play, read
from tests.golden.states import InspectedWorld
from tests.support.replaying import noting_runs
from turnloom.runtime.logic import FACTS

# Scenes in which runs go side by side: which of them is the first, and how much a collecting run
# has when it pauses, is a matter of pace.
SIDE_BY_SIDE = {
    "batches_by_size_by_time_and_by_close",
    "lines_of_an_order_are_batched",
    "runs_cancelled_during_turns",
}

# Kinds that no scene brings about, each with the reason.
UNPLAYED = {
    "state.migrated": "a scene has one model of its state",
    "run.retried": "what a retry does is in tests/runtime/test_retry.py",
    "run.forked": "what a fork does is in tests/forks",
    "message.sent": "what a message does is in tests/messages",
    "run.limited": "what a limit does is in tests/runtime/test_tenant_limits.py",
    "model.limited": "what a limit does is in tests/runtime/test_model_limits.py",
    "flow.rewound": "what a retry of a flow does is in tests/flow/test_retry.py",
    "artifact.refused": "only a publish of another process under the same id is refused so late",
}


def test_every_scene_has_a_golden_log() -> None:
    assert {log.stem for log in LOGS.glob("*.jsonl")} == SCENES.keys()


def test_every_kind_of_event_is_in_a_golden_log() -> None:
    played = {event["kind"] for name in SCENES for run in read(name) for event in run}
    assert played | UNPLAYED.keys() == {fact.kind for fact in FACTS}


@pytest.mark.parametrize("name", SCENES)
async def test_a_scene_goes_as_it_went(name: str, tmp_path: Path) -> None:
    """Meanwhile, states of its runs are looked at; then, its runs are replayed, and backtested with
    the same definition."""
    with noting_runs() as driven:
        played = await play(name, tmp_path, InspectedWorld())
    now, before = compared(played), compared(read(name))
    if name in SIDE_BY_SIDE:
        now, before = unpaced(now), unpaced(before)
    assert now == before
    assert not await to_thread.run_sync(driven.differences)
    assert not await to_thread.run_sync(driven.changes)


@pytest.mark.doors
@pytest.mark.parametrize("name", SCENES)
async def test_the_state_of_a_run_at_every_event(name: str, tmp_path: Path) -> None:
    world = InspectedWorld()
    world.every = True
    await play(name, tmp_path, world)


def compared(runs: list[list[Plain]]) -> list[dict[str, list[Plain]]]:
    """Logs as they are compared, as plain JSON."""
    return [paths(without_allowed(run)) for run in json.loads(json.dumps(runs))]


def unpaced(runs: list[dict[str, list[Plain]]]) -> list[dict[str, list[Plain]]]:
    """Logs in an order of their own, without the pauses of runs that collect."""
    found = [
        {
            path: [each for each in some if "wanted" not in each["data"]]
            for path, some in run.items()
        }
        for run in runs
    ]
    return sorted(found, key=lambda run: json.dumps(run, sort_keys=True))


def test_ids_have_128_bits_and_pins_256() -> None:
    events = [event for name in SCENES for run in read(name) for event in run]
    found = re.findall(r"\b[0-9a-f]{12,}\b", json.dumps([event["id"] for event in events]))
    started = [event["data"] for event in events if event["kind"] == "run.started"]
    pins = [pin for each in started for pin in (each["definition"], *each["code"].values())]
    published = [event["data"]["artifact"] for event in events if "artifact" in event["data"]]
    made = re.findall(r"\b[0-9a-f]{12,}\b", json.dumps(published))
    assert made
    assert {len(each) for each in (*found, *made)} == {32}
    assert {len(each) for each in pins if each} == {64}
