"""Test a board: its agents are scripted, and the test reads the board."""

import pytest
from pydantic import BaseModel

from turnloom import Board, FilterConfig, Loom, Private, ReactionFailed, Reader, artifact_type
from turnloom.testing import ScriptedEngine


@artifact_type
class Report(BaseModel):
    text: str


@artifact_type
class Summary(BaseModel):
    line: str


def declare(board: Board) -> None:
    """The agents, as the program declares them too."""
    board.agent("editor").description("Summarises.").consumes(Report).publishes(Summary)


async def test_a_report_is_summarised() -> None:
    engine = ScriptedEngine({"editor": ['{"line": "Sales rose."}']})
    async with Loom(store="memory", engine=engine) as app:
        board = app.board()
        declare(board)
        report = await board.publish(Report(text="Sales rose by a third in May."))
        await board.run_until_idle(timeout=5)
        (summary,), _ = await board.query_artifacts(FilterConfig(types={"Summary"}))
    assert summary.payload == {"line": "Sales rose."}
    assert summary.parents == (report.id,)
    assert "by a third" in engine.calls[0].prompt
    engine.assert_complete()


async def test_what_is_not_for_the_editor_is_not_summarised() -> None:
    async with Loom(store="memory", engine=ScriptedEngine({})) as app:
        board = app.board()
        declare(board)
        await board.publish(Report(text="Bonuses."), visibility=Private({"boss"}))
        await board.run_until_idle(timeout=5)
        assert (await board.read_as(Reader("boss")).summary()).total == 1
        assert (await board.summary()).total == 0


async def test_an_answer_that_is_no_summary_fails_the_turn() -> None:
    engine = ScriptedEngine({"editor": ["No."] * 9})
    async with Loom(store="memory", engine=engine) as app:
        board = app.board()
        declare(board)
        with pytest.raises(ReactionFailed, match="editor"):
            await board.invoke("editor", Report(text="…"))
