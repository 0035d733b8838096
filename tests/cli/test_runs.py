"""Runs chosen at the command line, and stores that are not there."""

import json
from datetime import timedelta
from pathlib import Path

import pytest

from tests.cli.conftest import Call
from tests.support.folders import write_folder
from turnloom import Loom, UsageError

TALK = {
    "orchestrator.yaml": "{initial_agent: A}",
    "agents.yaml": "A: {system_message: Hi., engine: scripted}",
    "script.yaml": "{agents: {A: [Hi.]}}",
}
ASK = {
    **TALK,
    "orchestrator.yaml": "{initial_agent: A, human_in_the_loop: true}",
    "handoffs.yaml": "[{source_agent: A, target_agent: user, handoff_type: after_work}]",
}


async def test_runs_are_chosen_by_status_workflow_user_and_time(
    turnloom: Call, tmp_path: Path
) -> None:
    talk, ask = write_folder(tmp_path, TALK, "Talk"), write_folder(tmp_path, ASK, "Ask")
    store = str(tmp_path / "runs.db")
    async with Loom(store=store) as app:
        first = await app.start(talk, user_id="ann")
        await first.finished()
        second = await app.start(talk, user_id="bob")
        await second.finished()
        third = await app.start(ask, user_id="ann")
        async for event in third.events():
            if event.kind == "run.paused":
                break
        begun = (await app.runs())[-1].started - timedelta(seconds=1)
        every = [third.id, second.id, first.id]
        assert [each.run for each in await app.runs(since=begun)] == every
        assert await app.runs(until=begun) == []
        assert [each.run for each in await app.runs(1, status="finished")] == [second.id]
        assert [each.run for each in await app.runs(before=second.id, user="ann")] == [first.id]
        for wrong in ({"status": "done"}, {"colour": "red"}, {"since": "now"}, {"user": 5}):
            with pytest.raises(UsageError):
                await app.runs(**wrong)  # type: ignore[arg-type]

    def listed(*words: str) -> list[str]:
        told = turnloom("runs", "--store", store, "--json", *words).out
        return [each["run"] for each in json.loads(told)]

    assert listed("--status", "waiting") == listed("--workflow", "Ask") == [third.id]
    assert listed("--status", "finished", "--status", "failed") == [second.id, first.id]
    assert listed("--user", "ann") == [third.id, first.id]
    assert listed("--since", begun.isoformat()) == every and listed("--until", "2020-01-01") == []
    assert "'finished'" in turnloom("runs", "--store", store, "--status", "finishd", code=2).err
    assert "2026-01-31" in turnloom("runs", "--store", store, "--since", "soon", code=2).err
    assert "'local'" in turnloom("runs", "--store", store, "--user", "eve").err


READING = [
    ("runs",),
    ("store", "verify"),
    ("explain", "last"),
    ("log", "last"),
    ("answer", "last", "yes"),
    ("cancel", "last"),
    ("resume", "last"),
    ("show", "plan", "last"),
    ("board", "list"),
]


@pytest.mark.parametrize("words", READING, ids=lambda words: words[0])
def test_what_reads_a_store_makes_none(
    turnloom: Call, tmp_path: Path, words: tuple[str, ...]
) -> None:
    assert "typo.db" in turnloom(*words, "--store", "typo.db", code=2).err
    named = turnloom(*words, code=2, TURNLOOM_STORE="sqlite:typo.db").err
    assert "typo.db" in named and "environment" in named
    by_default = turnloom(*words, code=2 if "last" in words else 0)
    assert by_default.out + by_default.err
    assert [*tmp_path.iterdir()] == []
