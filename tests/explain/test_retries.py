"""Attempts of model calls that failed: on record, in the explanation of a turn, in the timeline."""

from pathlib import Path
from typing import Any

import pytest

from tests.parity.forms.stages import write
from turnloom import Answer, Loom, Task, UsageError
from turnloom.adapters.pydantic_ai import Patience, PydanticAIEngine
from turnloom.explain.spec.steps import ModelCallEntry, RetryEntry
from turnloom.testing import HttpRefusal, LoopbackModel

KEY = "sk-live-9a8b7c6d5e4f3a2b"
FOLDER: dict[str, Any] = {
    "orchestrator": {"initial_message": "Add two and three."},
    "agents": {"Adder": {"system_message": "You add numbers."}},
}
BUSY = HttpRefusal(429, f"Too many requests of key {KEY}.", retry_after=0.01)
PATIENCE = Patience(retries=2, pause=0.01, longest_pause=0.02)


async def retried(app: Loom, run: str) -> list[Any]:
    """What is on record of the attempts that failed."""
    return [e.data for e in await app.history.events(run) if e.kind == "model.retried"]


async def test_each_failed_attempt_has_a_row_in_the_turn_and_is_counted_in_the_timeline(
    tmp_path: Path,
) -> None:
    folder = write(tmp_path, FOLDER)
    async with LoopbackModel([BUSY, HttpRefusal(500, "Overloaded."), "It is five."]) as model:
        engine = PydanticAIEngine("loopback", base_url=model.url, patience=PATIENCE)
        async with Loom(store="memory", engine=engine) as app:
            run = await app.start(folder)
            await run.finished()
            first, second = await retried(app, run.id)
            turn = await app.explain.turn(run.id, 1)
            timeline = await app.explain.timeline(run.id)
    assert (first.turn, first.agent, first.engine) == (1, "Adder", "PydanticAIEngine")
    assert first.message.startswith("returned status 429: Too many requests")
    assert KEY not in str(turn) and "⟨hidden:key⟩" in first.message
    assert "Overloaded." in second.message and second.pause >= 0
    asked = turn.steps[0]
    assert isinstance(asked, ModelCallEntry) and asked.outcome == "answered" and turn.verified
    rows = [each for each in asked.within if isinstance(each, RetryEntry)]
    assert [(row.n, row.message) for row in rows] == [(1, first.message), (2, second.message)]
    assert rows[0].says in str(turn)
    (row,) = [row for row in timeline.rows if row.what == "turn 1"]
    assert row.note.endswith("2 retries")


async def test_a_call_that_fails_for_good_shows_the_attempts_before(tmp_path: Path) -> None:
    folder = write(tmp_path, FOLDER)
    async with LoopbackModel([HttpRefusal(503, "Out.")] * 3) as model:
        engine = PydanticAIEngine("loopback", base_url=model.url, patience=PATIENCE)
        async with Loom(store="memory", engine=engine) as app:
            run = await app.start(folder)
            await run.finished()
            turn = await app.explain.turn(run.id, 1)
            timeline = await app.explain.timeline(run.id)
    asked = turn.steps[0]
    assert isinstance(asked, ModelCallEntry) and asked.outcome == "failed"
    assert [isinstance(each, RetryEntry) for each in asked.within[:2]] == [True, True]
    (row,) = [row for row in timeline.rows if row.what == "turn 1"]
    assert "2 retries" in row.note


async def test_secrets_are_masked_and_what_cannot_be_written_is_spelled_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def engine(task: Task) -> Answer:
        await task.retry("Busy", "no room for sesame-17 \ud800", 0.25)
        return Answer("Done.")

    monkeypatch.setenv("TOKEN", "sesame-17")
    variables = {
        "definitions": {
            "token": {
                "type": "string",
                "secret": True,
                "source": {"type": "environment", "env_var": "TOKEN"},
            }
        }
    }
    folder = write(tmp_path, FOLDER | {"context_variables": variables})
    async with Loom(store="memory", engine=engine) as app:
        run = await app.start(folder)
        await run.finished()
        (fact,) = await retried(app, run.id)
    assert fact.message == "no room for ⟨secret:token⟩ \\ud800"
    assert (fact.error, fact.pause) == ("Busy", 0.25)


async def test_nothing_is_recorded_for_a_call_that_is_over(tmp_path: Path) -> None:
    kept: list[Task] = []

    async def engine(task: Task) -> Answer:
        kept.append(task)
        with pytest.raises(UsageError):
            await task.retry("Busy", "no number", "soon")  # pyright: ignore[reportArgumentType]
        return Answer("Done.")

    async with Loom(store="memory", engine=engine) as app:
        run = await app.start(write(tmp_path, FOLDER))
        await run.finished()
        with pytest.raises(UsageError):
            await kept[0].retry("Busy", "too late", 1.0)
        assert await retried(app, run.id) == []


async def test_the_retries_of_a_selector_stand_in_its_row(tmp_path: Path) -> None:
    async def engine(task: Task) -> Answer:
        if task.output is None:
            return Answer("Done.")
        await task.retry("Busy", "no room", 0.0)
        return Answer(output={"agent": "B"})

    agents = {name: {"system_message": f"You are {name}."} for name in "ABC"}
    orchestrator = {"initial_message": "Hi.", "initial_agent": "A", "max_turns": 2}
    folder = write(
        tmp_path,
        {"orchestrator": orchestrator | {"orchestration_pattern": "AutoPattern"}, "agents": agents},
    )
    async with Loom(store="memory", engine=engine) as app:
        run = await app.start(folder)
        await run.finished()
        timeline = await app.explain.timeline(run.id)
    picks = [row.note for row in timeline.rows if row.what == "pick"]
    assert picks and all(note.endswith("1 retry") for note in picks)
