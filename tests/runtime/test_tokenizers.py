"""A run goes on where there is no tokenizer: what is recorded stays, what comes says so."""

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.reaction.scenes import logs
from tests.runtime import sourced_child as child
from tests.support.plays import every
from tests.support.world import PATIENCE
from turnloom import Event, Loom
from turnloom.explain.spec.turn import TurnExplained

pytestmark = [pytest.mark.repeats, pytest.mark.doors]

CHILD = """
import asyncio, sys
sys.modules["splintr"] = None  # as if it were not installed
from tests.runtime.sourced_child import main
asyncio.run(main(*sys.argv[1:]))
"""
ESTIMATE = "characters/4"


async def cut_off(where: Path, room: int, deed: str, place: str) -> list[str]:
    """Begin something, and stop for good at a place; what the engine was told by then."""
    engine, child.stops = child.Clerk(), child.Place()
    child.stops.name = place
    acting = asyncio.create_task(child.act(where, room, deed, engine))
    async with asyncio.timeout(PATIENCE):
        await child.stops.reached.wait()
    acting.cancel()
    await asyncio.wait({acting})
    return engine.prompts


async def go_on(where: Path, room: int, *deeds: str) -> dict[str, Any]:
    """What a process without a tokenizer tells of each deed, which it takes to its end."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", CHILD, str(where), str(room), *deeds]
    process = await asyncio.create_subprocess_exec(
        *command, env=env, stdout=asyncio.subprocess.PIPE
    )
    async with asyncio.timeout(PATIENCE):
        said, _ = await process.communicate()
    assert process.returncode == 0
    return {told["deed"]: told for told in map(json.loads, said.splitlines())}


async def read(where: Path, deed: str) -> tuple[list[Event], list[TurnExplained]]:
    """All events of the runs, and what is said of their turns, each of which must hold."""
    async with Loom(store=str(where / f"{deed}.db")) as app:
        events, explained = await logs(app), await child.explanations(app)
    assert [each.doubts for each in explained] == [()] * len(explained)
    return events, explained


async def test_a_frame_on_record_is_shown_as_it_is(tmp_path: Path) -> None:
    before, recorded = dict[str, list[str]](), dict[str, Any]()
    for deed in child.DEEDS:
        before[deed] = await cut_off(tmp_path, 60, deed, "engine")
        (recorded[deed],) = every((await read(tmp_path, deed))[0], "frame.assembled")
        assert recorded[deed].counter.startswith("o200k")
    for deed, told in (await go_on(tmp_path, 60, *child.DEEDS)).items():
        events, (first, second) = await read(tmp_path, deed)
        shown, frame = told["prompts"], recorded[deed]
        assert every(events, "frame.assembled")[0] == frame
        assert shown[:1] == before[deed] and shown == [first.prompt, second.prompt]
        assert first.tokens == frame.tokens == sum(each.tokens for each in first.segments)
        assert second.counter == ESTIMATE and ESTIMATE in told["said"]
        assert str(first.tokens) in told["said"] and frame.counter in told["said"]
        assert "7 1 4 9 2" in first.prompt
        assert "over_budget" in [each.reason for each in first.withheld]
        assert not second.withheld


async def test_a_frame_not_yet_made_is_made_without_it(tmp_path: Path) -> None:
    for deed in child.DEEDS:
        await cut_off(tmp_path, 60, deed, "provider")
        assert not every((await read(tmp_path, deed))[0], "frame.assembled")
    for deed, told in (await go_on(tmp_path, 60, *child.DEEDS)).items():
        events, explained = await read(tmp_path, deed)
        assert {each.counter for each in explained} == {ESTIMATE}
        assert told["prompts"] == [each.prompt for each in explained]
        searched = [event.run for event in events if event.kind == "retrieval.searched"]
        assert len(searched) == len({event.run for event in events})


async def test_frames_that_show_the_same_have_the_tokens_of_their_counters(tmp_path: Path) -> None:
    await cut_off(tmp_path, 600, "converse", "engine")
    await go_on(tmp_path, 600, "converse")
    events, (first, second) = await read(tmp_path, "converse")
    counted, estimated = every(events, "frame.assembled")
    assert counted.view == estimated.view
    assert [each.text for each in first.segments if each.kind != "history"] == [
        each.text for each in second.segments if each.kind != "history"
    ]
    for turn in (first, second):
        assert turn.tokens == sum(each.tokens for each in turn.segments)
    assert first.tokens > second.tokens
