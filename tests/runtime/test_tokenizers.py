"""A run goes on where there is no tokenizer: what is recorded stays, what comes says so."""

import json
import os
import signal
import sys
from pathlib import Path

import anyio
import pytest
from anyio.streams.text import TextReceiveStream

from tests.reaction.scenes import logs
from tests.runtime.sourced_child import explanations
from tests.support.plays import every
from turnloom import Event, Loom
from turnloom.explain.spec.turn import TurnExplained

pytestmark = pytest.mark.repeats

CHILD = Path(__file__).with_name("sourced_child.py")
ESTIMATE = "characters/4"
FORMS = pytest.mark.parametrize("deed", ["converse", "react"])


async def live(file: Path, deed: str, **environment: str) -> str:
    """What one life of a process says; it is killed as soon as it hangs."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment}
    command = [sys.executable, str(CHILD), str(file), deed]
    process = await anyio.open_process(command, stderr=None, env=env)
    said = ""
    with anyio.fail_after(55):
        assert process.stdout
        async for part in TextReceiveStream(process.stdout):
            said += part
            if "hangs" in said:
                os.kill(process.pid, signal.SIGKILL)
        code = await process.wait()
    await process.aclose()
    assert code == (-signal.SIGKILL if "HANG_IN" in environment else 0)
    return said


async def read(file: Path) -> tuple[list[Event], list[TurnExplained]]:
    """All events of the runs, and what is said of their turns, each of which must hold."""
    async with Loom(store=str(file)) as app:
        events, explained = await logs(app), await explanations(app)
    assert [each.doubts for each in explained] == [()] * len(explained)
    return events, explained


def prompts(said: str) -> list[str]:
    """The prompts that a process says its engine was shown."""
    return [json.loads(line) for line in said.splitlines() if line.startswith('"')]


@FORMS
async def test_a_frame_on_record_is_shown_as_it_is(tmp_path: Path, deed: str) -> None:
    file = tmp_path / "turnloom.db"
    before = prompts(await live(file, deed, HANG_IN="engine"))
    (recorded,) = every((await read(file))[0], "frame.assembled")
    said = await live(file, deed, NO_TOKENIZER="1")
    events, (first, second) = await read(file)
    shown = prompts(said)
    assert every(events, "frame.assembled")[0] == recorded
    assert recorded.counter.startswith("o200k")
    assert [shown[0]] == before and shown == [first.prompt, second.prompt]
    assert first.tokens == recorded.tokens == sum(each.tokens for each in first.segments)
    assert second.counter == ESTIMATE and f"tokens ({ESTIMATE})" in said
    assert f"{first.tokens} tokens ({recorded.counter})" in said
    assert "7 1 4 9 2" in first.prompt and "over_budget" in [it.reason for it in first.withheld]
    assert not second.withheld


@FORMS
async def test_a_frame_not_yet_made_is_made_without_it(tmp_path: Path, deed: str) -> None:
    file = tmp_path / "turnloom.db"
    await live(file, deed, HANG_IN="provider")
    assert not every((await read(file))[0], "frame.assembled")
    said = await live(file, deed, NO_TOKENIZER="1")
    events, explained = await read(file)
    assert {each.counter for each in explained} == {ESTIMATE}
    assert prompts(said) == [each.prompt for each in explained]
    searched = [event.run for event in events if event.kind == "retrieval.searched"]
    assert len(searched) == len({event.run for event in events})


async def test_frames_that_show_the_same_have_the_tokens_of_their_counters(tmp_path: Path) -> None:
    file, room = tmp_path / "turnloom.db", {"ROOM": "600"}
    await live(file, "converse", HANG_IN="engine", **room)
    await live(file, "converse", NO_TOKENIZER="1", **room)
    events, (first, second) = await read(file)
    counted, estimated = every(events, "frame.assembled")
    assert counted.view == estimated.view
    assert [each.text for each in first.segments if each.kind != "history"] == [
        each.text for each in second.segments if each.kind != "history"
    ]
    for turn in (first, second):
        assert turn.tokens == sum(each.tokens for each in turn.segments)
    assert first.tokens > second.tokens
