"""Runs of all three forms go as they went when their golden logs were made."""

import json
from pathlib import Path

import pytest

from tests.golden.allowed import without_allowed
from tests.golden.paths import Plain, paths
from tests.golden.recording import LOGS, SCENES, play, read
from weft.runtime.logic import FACTS

# Kinds that no scene brings about, each with the reason.
UNPLAYED = {
    "artifact.refused": "only a publish of another process under the same id is refused so late",
}


def test_every_scene_has_a_golden_log() -> None:
    assert {log.stem for log in LOGS.glob("*.jsonl")} == SCENES.keys()


def test_every_kind_of_event_is_in_a_golden_log() -> None:
    played = {event["kind"] for name in SCENES for run in read(name) for event in run}
    assert played | UNPLAYED.keys() == {fact.kind for fact in FACTS}


@pytest.mark.parametrize("name", SCENES)
async def test_a_scene_goes_as_it_went(name: str, tmp_path: Path) -> None:
    played = json.loads(json.dumps(await play(name, tmp_path)))
    golden = read(name)
    assert [compared(run) for run in played] == [compared(run) for run in golden]


def compared(run: list[Plain]) -> dict[str, list[Plain]]:
    """A log as it is compared."""
    return paths(without_allowed(run))
