"""A provider that keeps things, and that several audiences share, shows none of them another's."""

import asyncio
import gc
import threading
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel

from tests.reaction.scenes import everything
from turnloom import (
    AgentStep,
    Answer,
    Board,
    CompositeProvider,
    ContextProvider,
    ContextRequest,
    ContextSlice,
    Flow,
    Labelled,
    Loom,
    Private,
    Reader,
    SummaryProvider,
    Task,
    Visibility,
    artifact_type,
    from_provider,
)
from turnloom.agents.spec import Publication
from turnloom.errors import ContextUnavailable
from turnloom.kernel.values import canonical
from turnloom.testing import BoardTurn

ALL = Reader(tenant="local", role="developer")
SECRET = "the merger is on Friday"


@artifact_type(name="Memo")
class Memo(BaseModel):
    text: str


@artifact_type(name="Reply")
class Reply(BaseModel):
    text: str


class Keeps:
    """Gives, without a word on where they come from, the texts of all inputs that it ever had."""

    def __init__(self) -> None:
        self.kept: list[str] = []

    async def __call__(self, request: ContextRequest) -> ContextSlice:
        self.kept += [each.payload["text"] for each in request.inputs]
        return ContextSlice([{"said": text} for text in self.kept])


def bare(provider: ContextProvider) -> ContextProvider:
    return provider


def inside(provider: ContextProvider) -> ContextProvider:
    """The provider in others, of which each agent has its own."""
    return SummaryProvider(CompositeProvider(provider), summarise=canonical)


class Seen:
    """An engine that keeps what its agent was shown."""

    def __init__(self) -> None:
        self.shown: list[str] = []

    async def __call__(self, task: Task) -> Answer:
        self.shown.append(canonical(task.context.items))
        return Answer(artifacts=(Publication(Reply(text="noted")),))


def put(board: Board, name: str, provider: ContextProvider, *labels: str) -> Seen:
    seen = Seen()
    agent = board.agent(name).consumes(Memo).publishes(Reply, inherit=True).with_engines(seen)
    agent.with_context(provider)
    if labels:
        agent.labels(*labels)
    return seen


@pytest.mark.parametrize("around", [bare, inside])
async def test_a_shared_provider_shows_no_tenant_what_another_has(
    around: Callable[[ContextProvider], ContextProvider],
) -> None:
    provider = Keeps()
    async with Loom(store="memory") as app:
        acme, zeta = app.board("acme", app_id="acme"), app.board("zeta", app_id="zeta")
        ours, theirs = put(acme, "clerk", around(provider)), put(zeta, "clerk", around(provider))
        for board, text in ((acme, SECRET), (zeta, "hello"), (acme, "again"), (zeta, "bye")):
            await board.publish(Memo(text=text))
            await board.run_until_idle()
    assert [SECRET in shown for shown in ours.shown] == [True, True]
    assert len(theirs.shown) == 2 and not any(SECRET in shown for shown in theirs.shown)
    assert "hello" in theirs.shown[1]


class KeepsLoop(Keeps):
    """Holds on to the event loop, and maybe to something that cannot be copied."""

    def __init__(self, other: object) -> None:
        super().__init__()
        self.other = other
        self.loop = asyncio.get_running_loop()


@pytest.mark.parametrize(
    ("other", "tenants"),
    [(None, ["acme", "zeta"]), (threading.Lock(), ["acme"])],
    ids=["copied", "not copied"],
)
async def test_a_provider_that_holds_the_event_loop(other: object, tenants: list[str]) -> None:
    """The loop is not copied, not even by half: that would be reported when it is collected."""
    provider = KeepsLoop(other)
    async with Loom(store="memory") as app:
        for tenant in tenants:
            board = app.board(tenant, app_id=tenant)
            seen = put(board, "clerk", provider)
            await board.publish(Memo(text="hello"))
            await board.run_until_idle()
            assert len(seen.shown) == 1
    gc.collect()


@pytest.mark.parametrize("around", [bare, inside])
@pytest.mark.parametrize("visibility", [Labelled({"staff"}), Private({"insider"})])
async def test_a_shared_provider_shows_no_agent_what_it_may_not_see(
    around: Callable[[ContextProvider], ContextProvider], visibility: Visibility
) -> None:
    """What was kept of something narrow is labelled as narrowly whenever it is shown, so that what
    is made of it goes to nobody else."""
    provider = Keeps()
    async with Loom(store="memory") as app:
        board = app.board()
        insider = put(board, "insider", around(provider), "staff")
        outsider = put(board, "outsider", around(provider))
        await board.publish(Memo(text=SECRET), visibility=visibility)
        await board.run_until_idle()
        await board.publish(Memo(text="hello"))
        await board.run_until_idle()
        made = [each for each in await everything(board, reader=ALL) if each.type == "Reply"]
    assert [SECRET in shown for shown in insider.shown] == [True, True]
    assert len(outsider.shown) == 1 and SECRET not in outsider.shown[0]
    by = [(each.produced_by, each.visibility == visibility) for each in made]
    assert sorted(by) == [("insider", True), ("insider", True), ("outsider", False)]


class Topic(BaseModel):
    model_config = {"frozen": True}

    text: str = ""


async def test_a_shared_provider_shows_no_user_what_another_said() -> None:
    class Remembers:
        def __init__(self) -> None:
            self.users: list[str] = []

        async def __call__(self, request: ContextRequest) -> ContextSlice:
            self.users.append(request.ctx.run.user)
            return ContextSlice([{"users": [*self.users]}])

    class Ask(AgentStep[Topic]):
        def user_prompt(self, state: Topic) -> str:
            return "Who was here?"

        def apply(self, state: Topic, answer: str, context: Any) -> dict[str, str]:
            return {"text": context.to_prompt_string()}

    async def engine(task: Task) -> str:
        return "done"

    context = [from_provider(Remembers())]
    async with Loom(store="memory", engine=engine) as app:
        flow = Flow("who", Topic).start_with(Ask, context=context)
        ends = [await app.run(flow, Topic(), user_id=user) for user in ("ann", "bob", "ann")]
    shown = [(end.state.text.count("ann"), end.state.text.count("bob")) for end in ends]
    assert shown == [(1, 0), (0, 1), (2, 0)]


async def test_a_provider_that_cannot_be_copied_is_refused_to_another_audience() -> None:
    class Locked(Keeps):
        def __init__(self) -> None:
            super().__init__()
            self.lock = threading.Lock()

    class Open(Locked):
        stateless = True

    for provider, is_refused in ((Locked(), True), (Open(), False)):
        await BoardTurn(reader=Reader("ann")).gather(provider)
        if is_refused:
            with pytest.raises(ContextUnavailable, match="stateless"):
                await BoardTurn(reader=Reader("bob")).gather(provider)
        await BoardTurn(reader=Reader("ann" if is_refused else "bob")).gather(provider)
