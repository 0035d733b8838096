"""The example of sources: real documents, a real embedder, and every store of collections."""

import runpy
from collections.abc import Callable
from pathlib import Path

import pytest
from anyio import to_thread

from tests.docs.markdown import ROOT
from turnloom import Loom
from turnloom.explain.spec.turn import TurnExplained

EXAMPLE = ROOT / "examples" / "research_library.py"

# Of each question, in order, the document that answers it, and what it says there.
ANSWERS = (
    ("bees.md", "by dancing"),
    ("tides.md", "The moon pulls at the sea"),
    ("sourdough.md", "forty minutes"),
)


@pytest.fixture(params=["sqlite", "postgres"])
def play(
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> Callable[[], str]:
    """Runs the example, and gives what it printed."""
    monkeypatch.chdir(tmp_path)
    if request.param == "postgres":
        monkeypatch.setenv("TURNLOOM_VECTORS", request.getfixturevalue("postgres_url"))

    def run() -> str:
        runpy.run_path(str(EXAMPLE), run_name="__main__")
        return capsys.readouterr().out

    return run


def test_each_question_is_answered_from_its_document(play: Callable[[], str]) -> None:
    first, again = play(), play()
    for printed in (first, again):
        assert printed.count("digests verified") == len(ANSWERS)
        for source, words in ANSWERS:
            assert f"[{source}]" in printed and words in printed
            assert f"{source}#" in printed and "over_budget" in printed


@pytest.fixture
async def turns(play: Callable[[], str]) -> list[TurnExplained]:
    """The turns that the example took, from the log alone."""
    await to_thread.run_sync(play)
    async with Loom() as app:
        runs = [summary.run for summary in reversed(await app.runs())]
        found = [await app.explain.turn(run, 1) for run in runs]
    return [each for each in found if isinstance(each, TurnExplained)]


async def test_the_log_tells_what_was_found_and_what_had_no_room(
    turns: list[TurnExplained],
) -> None:
    assert len(turns) == len(ANSWERS)
    for turn, (source, words) in zip(turns, ANSWERS, strict=True):
        (passage,) = (each for each in turn.segments if each.kind == "context.retrieval")
        told, _, score = passage.reason.partition(" scores ")
        assert told.startswith(f"{source}#") and 0.2 <= float(score) <= 1
        assert words in passage.text and passage.text in turn.prompt
        assert {each.reason for each in turn.withheld} <= {"over_budget", "low_relevance"}
        assert sum(each.tokens for each in turn.segments) == turn.tokens
