"""Documents of tenants, through the app: added as one, found by its agents, in every form."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict

from tests.support.folders import write_folder
from turnloom import (
    AgentStep,
    Answer,
    AssembledContext,
    Document,
    Flow,
    Loom,
    RagCollection,
    Reader,
    RetrievalResult,
    Shared,
    Task,
    artifact_type,
    from_retrieval,
)
from turnloom.assembly.spec.retrieval import AddedDocuments
from turnloom.errors import UsageError
from turnloom.testing import InMemorySearch


class Shelf(RagCollection):
    name = "shelf"


SOURCE = from_retrieval(Shelf, "red fish", 9, 0.1)


class Clerk:
    """An engine that remembers what it was shown."""

    def __init__(self) -> None:
        self.shown: list[str] = []

    async def __call__(self, task: Task) -> Answer:
        self.shown.append(f"{task.prompt} {task.context} {task.transcript}")
        return Answer("Done.")


async def fill(app: Loom) -> None:
    """Two tenants with documents of the same ids, of which the third one is shared."""
    for tenant in ("acme", "globex"):
        shelf = app.collection(Shelf, app_id=tenant)
        added = await shelf.add(
            [
                Document("a", f"red fish alpha-{tenant}"),
                Document("b", f"red fish beta-{tenant}"),
                Document("c", f"red fish common-{tenant}", visibility=Shared()),
            ]
        )
        assert added.added == 3


# ------------------------------------------------------------------ in turns


@artifact_type(name="shelf.Order")
class Order(BaseModel):
    """What wakes the clerk of a board."""


class Note(BaseModel):
    """What the clerk of a flow works on."""

    model_config = ConfigDict(frozen=True)

    text: str = ""


async def on_a_board(app: Loom, clerk: Clerk, tenant: str, where: Path) -> None:
    board = app.board(f"board-{tenant}", app_id=tenant)
    board.agent("clerk").consumes(Order).with_engines(clerk).with_sources(SOURCE)
    await board.publish(Order())
    await board.run_until_idle()


def done(state: Note) -> None:
    """Nothing is left to do."""


async def in_a_flow(app: Loom, clerk: Clerk, tenant: str, where: Path) -> None:
    class Work(AgentStep[Note]):
        model = "small"

        def user_prompt(self, state: Note) -> str:
            return "Write."

        def apply(self, state: Note, answer: str, context: AssembledContext) -> dict[str, str]:
            return {"text": answer}

    flow = Flow("work", Note).start_with(Work, context=[SOURCE]).finally_(done)
    await app.run(flow, Note(), app_id=tenant)


async def in_a_conversation(app: Loom, clerk: Clerk, tenant: str, where: Path) -> None:
    search = "{retrieval: {collection: shelf, query: red fish, top_k: 9, min_relevance: 0.1}}"
    setup = "initial_message: Well?\norchestration_pattern: RoundRobinPattern\nmax_turns: 1"
    folder = write_folder(
        where / tenant,
        {
            "agents.yaml": f"Clerk: {{system_message: Pack., context: {{sources: [{search}]}}}}",
            "orchestrator.yaml": setup,
        },
    )
    run = await app.start(folder, app_id=tenant)
    assert [event async for event in run.events()]


FORMS: Sequence[Callable[[Loom, Clerk, str, Path], Awaitable[None]]] = (
    on_a_board,
    in_a_flow,
    in_a_conversation,
)


@pytest.mark.parametrize("play", FORMS, ids=lambda play: play.__name__)
async def test_agents_find_what_is_of_their_tenant_or_shared(
    play: Callable[[Loom, Clerk, str, Path], Awaitable[None]], tmp_path: Path
) -> None:
    for tenant, has in (("acme", True), ("globex", True), ("local", False)):
        clerk = Clerk()
        async with Loom(store="memory", engine=clerk) as app:
            app.register_collection(Shelf, InMemorySearch())
            await fill(app)
            await play(app, clerk, tenant, tmp_path)
        (shown,) = clerk.shown
        assert "common-acme" in shown and "common-globex" in shown
        for other in ("acme", "globex"):
            is_own = has and other == tenant
            assert (f"alpha-{other}" in shown) == (f"beta-{other}" in shown) == is_own


# ------------------------------------------------------------------ by the program


@pytest.mark.parametrize("vectors", ["memory", "sqlite:v.db"])
async def test_a_program_fills_and_searches_as_a_tenant(
    vectors: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    async def found(app_id: str, **asked: Any) -> list[str]:
        shelf = app.collection(Shelf, app_id=app_id)
        results = await shelf.search("red fish", 9, 0.1, **asked)
        return sorted(each.content.split()[-1] for each in results)

    async with Loom(store="memory", vectors=vectors) as app:
        await fill(app)
        common = ["common-acme", "common-globex"]
        acme, globex = ([f"alpha-{t}", f"beta-{t}", *common] for t in ("acme", "globex"))
        assert await found("local") == common
        assert await found("acme") == acme and await found("globex") == globex
        assert await found("local", reader=Reader(tenant="acme")) == acme
        shelf = app.collection(Shelf, app_id="acme")
        assert await app.collection(Shelf).remove(["a", "c"]) == 0
        assert await shelf.remove(["a", "c"]) == 2
        assert await found("acme") == ["beta-acme", "common-globex"]
        assert await found("globex") == sorted(globex[:2] + ["common-globex"])
        for call in (shelf.add([], "a\0b"), shelf.remove([], "\ud800")):
            with pytest.raises(UsageError):
                await call
        with pytest.raises(UsageError):
            await found("a\0b")


class Tenantless:
    """An adapter that does not ask whose documents are."""

    async def search(self, query: str, *asked: Any) -> list[RetrievalResult]:
        return [RetrievalResult("red fish", 1.0, "a")]

    async def add(self, documents: Iterable[Document]) -> AddedDocuments:
        return AddedDocuments()

    async def remove(self, ids: Iterable[str]) -> int:
        return 0

    async def aclose(self) -> None:
        """Nothing is open."""


async def test_an_adapter_that_does_not_tell_tenants_apart_is_not_opened_for_one() -> None:
    given: Any = Tenantless()
    async with Loom(store="memory") as app:
        app.register_collection(Shelf, given)
        assert app.collection(Shelf) is given
        with pytest.raises(UsageError) as refused:
            app.collection(Shelf, app_id="acme")
        assert "'shelf'" in str(refused.value) and "'acme'" in str(refused.value)
