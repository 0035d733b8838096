"""What is made of things that not everybody may see: who is shown it, and what is on record."""

from typing import Any

import pytest

from tests.reaction.scenes import Clerk, Order, Parcel, Payment, facts, failures, idle, pack
from turnloom import (
    Board,
    Loom,
    SummaryProvider,
    TranscriptProvider,
    from_history,
    from_provider,
    from_retrieval,
)
from turnloom.agents.spec import Answer, Publication, Task
from turnloom.assembly.spec import ContextRequest, ContextSlice, Document, RagCollection
from turnloom.board.spec import Artifact, FilterConfig, Labelled, Private, Public, Tenant
from turnloom.testing import InMemorySearch

CANARY = "canary-7731"


async def tell(task: Task) -> Answer:
    return Answer("Done.", artifacts=(Publication(Order(item=CANARY), visibility=PRIVATE),))


PRIVATE = Private({"clerk"})


@pytest.mark.parametrize("source", [from_history(), from_provider(TranscriptProvider())])
async def test_what_was_said_is_read_by_whom_it_is_for(board: Board, source: Any) -> None:
    """An output stands in what was said, too; there it is for those for whom it was published."""
    board.agent("teller").consumes(Payment).publishes(Order).with_engines(tell)
    clerk, other = Clerk(), Clerk()
    for name, engine in (("clerk", clerk), ("other", other)):
        agent = board.agent(name).consumes(Order, Payment).with_engines(engine)
        agent.with_sources(source)
    board.agent("late").consumes(Payment, Payment).with_engines(late := Clerk()).with_sources(
        source
    )
    await board.publish(Payment(), correlation_id="all")
    await idle(board)
    await board.publish(Payment(), correlation_id="all")
    await idle(board)
    assert CANARY in clerk.tasks[0].prompt
    assert not other.tasks
    assert "Done." in late.tasks[0].prompt and CANARY not in late.tasks[0].prompt


async def whole(request: ContextRequest) -> ContextSlice:
    """Everything there is, said in one item."""
    found, _ = await request.board.query_artifacts(FilterConfig(types={"Payment"}))
    return ContextSlice([{"type": "Note", "payload": f"{len(found)} payments"}])


async def each(request: ContextRequest) -> ContextSlice:
    found, _ = await request.board.query_artifacts(FilterConfig(types={"Payment"}))
    return ContextSlice([{"payload": it.payload, "artifact_id": it.id} for it in found])


def short(item: dict[str, Any]) -> str:
    return "in short"


async def test_what_is_shown_carries_who_may_see_it(app: Loom, board: Board) -> None:
    board.register(Payment)
    agent = board.agent("clerk").consumes(Order).with_engines(Clerk()).labels("hr").tenant("local")
    agent.with_sources(from_provider(SummaryProvider(each, short)), from_provider(whole))
    for visibility in (Labelled({"hr"}), Tenant("local"), Private({"nobody"})):
        await board.publish(Payment(), visibility=visibility)
    await board.publish(Order())
    await idle(board)
    summaries, note = await facts(app, "context.gathered")
    assert [it.visibility for it in summaries.items] == [(Labelled({"hr"}),), (Tenant("local"),)]
    assert [it.visibility for it in note.items] == [(Labelled({"hr"}), Tenant("local"))]
    (frame,) = await facts(app, "frame.assembled")
    assert frame.visibility == (Labelled({"hr"}), Tenant("local"))
    latest, *_ = await app.runs()
    told = str(await app.explain.turn(latest.run, 1))
    assert "hr" in told and "local" in told


class Manual(RagCollection):
    name = "manual"


async def publish(board: Board, **said: Any) -> None:
    """Have an agent make something that is shown a passage for those with a label."""
    agent = board.agent("clerk").consumes(Order).publishes(Parcel, **said).labels("hr", "board")
    agent.with_engines(Clerk(pack)).with_sources(from_retrieval(Manual, "tea", min_relevance=0.1))
    await board.publish(Order(), visibility=Labelled({"board"}))


async def made(app: Loom, board: Board) -> Artifact:
    """What the agent made."""
    await idle(board)
    *_, published = await facts(app, "artifact.published")
    assert published.artifact.produced_by == "clerk"
    return published.artifact


@pytest.fixture
async def manual(app: Loom) -> InMemorySearch:
    search = InMemorySearch()
    await search.add([Document("t", "tea", visibility=Labelled({"hr"}))])
    app.register_collection(Manual, search)
    return search


async def test_what_is_made_inherits_who_may_see_what_it_was_made_of(
    app: Loom, board: Board, manual: InMemorySearch
) -> None:
    await publish(board, inherit=True)
    assert (await made(app, board)).visibility == Labelled({"hr", "board"})


async def test_what_is_made_is_for_whom_its_maker_says_and_labelled_on_record(
    app: Loom, board: Board, manual: InMemorySearch
) -> None:
    await publish(board)
    assert (await made(app, board)).visibility == Public()
    (frame,) = await facts(app, "frame.assembled")
    assert frame.visibility == (Labelled({"hr", "board"}),)


async def test_what_no_visibility_says_is_not_published(
    board: Board, manual: InMemorySearch
) -> None:
    await publish(board, inherit=True, visibility=Private({"clerk"}))
    assert len(await failures(board)) == 1
