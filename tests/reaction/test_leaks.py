"""Whatever agents are given their context by: none is shown what is kept from it, in any prompt."""

from datetime import datetime
from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.assembly.test_seeing import providers
from tests.board.strategies import any_of, names, visibilities
from tests.reaction.scenes import Clerk, Order, Payment, Receipt, failures, logs
from turnloom import Board, ContextProvider, Loom, from_history, from_provider, from_retrieval
from turnloom.agents.spec import Answer, Publication, Task
from turnloom.assembly.spec import Document, RagCollection
from turnloom.board.logic.matching import may_see
from turnloom.board.spec import Reader, Tenant, Visibility, is_shared
from turnloom.testing import InMemorySearch


class Shelf(RagCollection):
    name = "shelf"


class Kept(NamedTuple):
    """Who may see what was published, what was said and published by an agent, and documents."""

    published: list[Visibility]
    said: list[Visibility]
    documents: list[Visibility]

    def canaries(self) -> dict[str, Visibility]:
        """Everything that is somebody's only, under the word that it is known by."""
        return {
            f"{kind}-{n}-canary": each
            for kind, some in self._asdict().items()
            for n, each in enumerate(some)
        }

    def of(self, kind: str) -> list[tuple[str, Visibility]]:
        return [(word, each) for word, each in self.canaries().items() if word.startswith(kind)]


of_us = visibilities | st.just(Tenant("local"))
some_kept = st.lists(of_us, max_size=3)
some_said = st.lists(of_us.filter(lambda each: not is_shared(each)), max_size=3)
kept_things = st.builds(Kept, some_kept, some_said, some_kept)
looking = st.lists(
    st.builds(Reader, names, any_of),
    min_size=1,
    max_size=3,
    unique_by=lambda reader: reader.agent,
)


def declare(board: Board, kept: Kept, readers: dict[Reader, Clerk], shown: ContextProvider) -> None:
    """One agent that says and publishes what is kept, and those that look at all there is."""

    async def tell(task: Task) -> Answer:
        made = [Publication(Payment(item=word), visibility=each) for word, each in kept.of("said")]
        return Answer("Done.", artifacts=(*made, Publication(Order())))

    board.agent("teller").consumes(Receipt).publishes(Payment, Order).with_engines(tell)
    for reader, clerk in readers.items():
        agent = board.agent(reader.agent).consumes(Order)
        if reader.labels:
            agent.labels(*reader.labels)
        agent.tenant(reader.tenant)
        agent.with_engines(clerk).with_sources(
            from_provider(shown), from_history(), from_retrieval(Shelf, "red fish", 9, 0.0)
        )


async def moments(app: Loom) -> dict[str, datetime]:
    """When each agent was shown something."""
    return {it.data.agent: it.at for it in await logs(app) if it.kind == "frame.assembled"}


@settings(max_examples=50)
@given(kept_things, looking, providers)
async def test_no_prompt_shows_what_is_kept_from_its_reader(
    kept: Kept, looking: list[Reader], shown: ContextProvider
) -> None:
    search, readers = InMemorySearch(), {reader: Clerk() for reader in looking}
    await search.add(
        Document(word, f"red fish {word}", visibility=each) for word, each in kept.of("documents")
    )
    async with Loom(store="memory") as app:
        app.register_collection(Shelf, search)
        board = app.board()
        declare(board, kept, readers, shown)
        for n, (word, each) in enumerate(kept.of("published")):
            await board.publish(
                Payment(item=word), id=str(n), visibility=each, correlation_id="all"
            )
        await board.publish(Receipt(), correlation_id="all")
        await failures(board)
        shown_at = await moments(app)
    for reader, clerk in readers.items():
        for task in clerk.tasks:
            told = f"{task.prompt} {task.context}"
            for word, each in kept.canaries().items():
                is_for = may_see(each, reader, shown_at[reader.agent])
                assert is_for or word not in told, (word, each, reader)
                assert not is_for or not word.startswith("documents") or word in told
