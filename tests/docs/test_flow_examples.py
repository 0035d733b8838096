"""The examples of flows: what they print, and what the log tells of them."""

import runpy
from collections.abc import Callable
from pathlib import Path

import pytest
from anyio import to_thread

from tests.docs.console import run as run_command
from tests.docs.markdown import ROOT
from tests.support.warm import Warm
from turnloom import Event, Loom
from turnloom.explain.spec.turn import TurnExplained

EXAMPLES = ("order_processing", "document_review", "refinement", "model_routing")


@pytest.fixture
def play(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Callable[[str], str]:
    """Runs an example, and gives what it printed."""
    monkeypatch.chdir(tmp_path)

    def run(name: str) -> str:
        runpy.run_path(str(ROOT / "examples" / f"{name}.py"), run_name="__main__")
        return capsys.readouterr().out

    return run


async def latest() -> list[Event]:
    """The log of the run that was begun last."""
    async with Loom() as app:
        run, *_ = await app.runs()
        return [*await app.history.events(run.run)]


async def seen(turn: int) -> TurnExplained:
    """A turn of the run that was begun last, from the log alone."""
    async with Loom() as app:
        run, *_ = await app.runs()
        explained = await app.explain.turn(run.run, turn)
    assert isinstance(explained, TurnExplained) and explained.verified, explained
    return explained


def test_every_example_builds_a_flow_without_a_fault(tmp_path: Path, warm: Warm) -> None:
    files = " ".join(str(ROOT / "examples" / f"{name}.py") for name in EXAMPLES)
    assert run_command(f"turnloom check {files} && echo checked", tmp_path, warm) == "checked\n"


async def test_an_order_that_cannot_be_shipped_is_undone(play: Callable[[str], str]) -> None:
    printed = await to_thread.run_sync(play, "order_processing")
    assert "kettle to Mill Lane 3: finished" in printed
    assert "in stock: {'kettle': 2, 'lamp': 1}; the bank was called 4 times" in printed
    facts = [event.data for event in await latest()]
    undone = [fact.place for fact in facts if fact.kind == "step.compensated"]
    assert undone == ["charge", "fork.0/reserve"]
    assert facts[-1].kind == "run.failed"


async def test_a_review_shows_the_rules_that_fit(play: Callable[[str], str]) -> None:
    for _ in range(2):
        printed = await to_thread.run_sync(play, "document_review")
        assert "editor is asked: Publish 'Tide tables' with 2 remarks?" in printed
        assert "published, after the captions; cited: dates, images" in printed
    turn = await seen(1)
    found = [each for each in turn.segments if each.kind == "context.retrieval"]
    assert [each.reason.partition("#")[0] for each in found] == ["dates", "images"]
    assert all(each.text in turn.prompt for each in found)


async def test_a_slogan_is_refined_until_the_critic_is_content(play: Callable[[str], str]) -> None:
    printed = await to_thread.run_sync(play, "refinement")
    assert "finished: Tea before you find a cup." in printed
    assert "refine ended after 3: the condition holds" in printed
    assert "noticed: oscillation; done about it: synthesise" in printed
    turn = await seen(5)
    assert "14 words, use at most six" in turn.prompt
    assert "The kettle that boils water faster" in turn.prompt
    (hint,) = (each for each in turn.segments if each.kind == "hint")
    assert hint.origin == "guards.loop_detection" and hint.text in turn.prompt


def test_questions_go_to_the_model_that_can_answer_them(play: Callable[[str], str]) -> None:
    printed = play("model_routing")
    times = {
        tuple(line.split(" was asked ")[0].split(": ")): int(line.split()[-2])
        for line in printed.splitlines()
        if " was asked " in line
    }
    assert times["numbers", "large"] == 30 > times["numbers", "small"]
    assert times["words", "small"] > 20
    assert "answers to What is 6 * 7? ['42']" in printed
