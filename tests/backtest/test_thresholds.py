"""A turn with another threshold of one of its searches: decided again, with its budget."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.flow.scenes import Model, Writer, flow_of
from tests.reaction.scenes import Clerk, Order, Parcel, idle, pack
from tests.support.folders import as_json, write_folder
from turnloom import (
    Answer,
    Loom,
    RagCollection,
    RetrievalResult,
    Task,
    UsageError,
    WhatIf,
    from_retrieval,
)
from turnloom.testing import InMemorySearch

TEA = RetrievalResult("Tea is packed dry.", 0.9, "tea.md")
LAMPS = RetrievalResult("Lamps are packed last.", 0.65, "lamps.md")
JARS = RetrievalResult("Jars are packed upright. " * 40, 0.4, "jars.md")


class Manual(RagCollection):
    name = "manual"


SOURCE = "{retrieval: {collection: manual, query: '{topic}', min_relevance: 0.7}}"
FOLDER = {
    "orchestrator.yaml": """
        {workflow_name: Packing, initial_agent: Clerk, initial_message: Well?, max_turns: 3,
         orchestration_pattern: RoundRobinPattern}
        """,
    "agents.yaml": f"""
        Clerk:
          system_message: Pack.
          context: {{sources: [{SOURCE}], budget: {{max_tokens: 60}}}}
        """,
    "context_variables.yaml": """
        definitions: {topic: {type: string, source: {type: static, value: tea}}}
        """,
}


async def engine(task: Task) -> Answer:
    """An answer in words."""
    return Answer("Packed.")


async def packed(app: Loom) -> str:
    """The run of a board whose agent searches."""
    board = app.board("depot")
    clerk = board.agent("clerk").consumes(Order).publishes(Parcel).with_engines(Clerk(pack))
    clerk.with_sources(from_retrieval(Manual, "tea", min_relevance=0.7))
    await board.publish(Order())
    await idle(board)
    (run,) = await app.runs()
    return run.run


def shelf() -> InMemorySearch:
    search = InMemorySearch()
    search.seed(TEA, LAMPS, JARS)
    return search


@pytest.fixture
async def app() -> AsyncIterator[Loom]:
    async with Loom(store="memory", engine=engine) as app:
        app.register_collection(Manual, shelf())
        yield app


async def talked(app: Loom, where: Path) -> str:
    run = await app.start(write_folder(where, as_json(FOLDER), "Packing"))
    await run.finished()
    return run.id


async def what_if(app: Loom, run: str, threshold: float, turn: int = 1) -> WhatIf:
    events = await app.history.events(run)
    search = next(each.seq for each in events if each.kind == "retrieval.searched")
    return await app.explain.what_if(run, turn, search, threshold)


def called(origins: tuple[str, ...]) -> list[str]:
    return [each.rpartition(" ")[2] for each in origins]


async def test_a_lower_threshold_lets_a_result_in(app: Loom, tmp_path: Path) -> None:
    found = await what_if(app, await talked(app, tmp_path), 0.65)
    assert (found.certainty, found.min_relevance, found.end) == ("certain", 0.7, "")
    assert called(found.entered) == ["lamps.md#0"] and not found.left_out
    (segment,) = found.segments
    assert found.edited_tokens - found.tokens == segment.edited - segment.recorded > 0


async def test_what_does_not_fit_the_budget_stays_out(app: Loom, tmp_path: Path) -> None:
    found = await what_if(app, await talked(app, tmp_path), 0.3)
    assert called(found.entered) == ["lamps.md#0"]
    (jars,) = found.otherwise_out
    assert jars.reason == "over_budget" and jars.origin.endswith("jars.md#0")


async def test_a_higher_threshold_leaves_a_result_out(app: Loom, tmp_path: Path) -> None:
    found = await what_if(app, await talked(app, tmp_path), 0.95)
    assert not found.entered and found.edited_tokens < found.tokens
    assert {each.reason for each in found.left_out} == {"low_relevance", "empty"}


async def test_the_same_threshold_changes_nothing(app: Loom, tmp_path: Path) -> None:
    found = await what_if(app, await talked(app, tmp_path), 0.7)
    assert (found.certainty, found.segments, found.entered) == ("", (), ())
    assert found.edited_tokens == found.tokens


async def test_a_later_turn_is_assumed_if_earlier_ones_had_other_prompts(
    app: Loom, tmp_path: Path
) -> None:
    found = await what_if(app, await talked(app, tmp_path), 0.65, turn=3)
    assert (found.turn, found.certainty) == (3, "assumed")
    assert called(found.entered) == ["lamps.md#0"]


async def test_a_turn_of_a_board(app: Loom) -> None:
    found = await what_if(app, await packed(app), 0.65)
    assert (found.agent, found.certainty) == ("clerk", "certain")
    assert called(found.entered) == ["lamps.md#0"]


async def test_a_step_of_a_flow(app: Loom) -> None:
    source = from_retrieval(Manual, "tea", min_relevance=0.7)
    outcome = await app.run(flow_of(Writer(Model()), context=[source]))
    found = await what_if(app, outcome.run_id, 0.65)
    assert found.certainty == "certain" and called(found.entered) == ["lamps.md#0"]


async def test_an_event_that_is_no_search_is_refused(app: Loom, tmp_path: Path) -> None:
    run = await talked(app, tmp_path)
    for turn, search, threshold in ((1, 1, 0.5), (9, 1, 0.5), (1, 1, 7.0)):
        with pytest.raises(UsageError):
            await app.explain.what_if(run, turn, search, threshold)


async def test_a_run_whose_code_is_not_here_is_refused(tmp_path: Path) -> None:
    store = str(tmp_path / "runs.db")
    async with Loom(store=store, engine=engine) as app:
        app.register_collection(Manual, shelf())
        run = await packed(app)
    async with Loom(store=store, engine=engine) as app:
        with pytest.raises(UsageError):
            await what_if(app, run, 0.65)
