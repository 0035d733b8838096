"""The context of turns on a board: whose provider gives it, and what is never in it."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.reaction.scenes import (
    Clerk,
    Order,
    Parcel,
    Payment,
    everything,
    facts,
    failures,
    idle,
    pack,
)
from turnloom import (
    Board,
    CompositeProvider,
    DefaultCorrelationProvider,
    FilteredContextProvider,
    Loom,
    RedactingProvider,
)
from turnloom.agents.spec import Task
from turnloom.assembly.spec import ContextProvider, ContextRequest, ContextSlice
from turnloom.board.spec import (
    After,
    FilterConfig,
    Labelled,
    Private,
    Reader,
    TagFilter,
    Tenant,
    Visibility,
)
from turnloom.errors import UsageError
from turnloom.reaction.spec import Batch

TOMORROW = datetime.now(UTC) + timedelta(days=1)  # noqa: TID251 - the clock of the app is real
HIDDEN: list[Visibility] = [
    Private({"other"}),
    Labelled({"boss"}),
    Tenant("globex"),
    After(TOMORROW),
]


class Giving:
    """A provider that gives one word."""

    def __init__(self, word: str) -> None:
        self.word = word
        self.requests: list[ContextRequest] = []

    async def __call__(self, request: ContextRequest) -> ContextSlice:
        self.requests.append(request)
        return ContextSlice([{"type": "Word", "payload": {"item": self.word}}])


async def failing(request: ContextRequest) -> ContextSlice:
    raise LookupError("the archive burns")


async def dawdling(request: ContextRequest) -> ContextSlice:
    await asyncio.Event().wait()
    raise AssertionError("nobody opens this")


async def everything_there(request: ContextRequest) -> ContextSlice:
    """What somebody writes who forgets that not everything is for everybody."""
    found, _ = await request.board.query_artifacts()
    return ContextSlice([{"artifact_id": each.id, "payload": each.payload} for each in found])


async def test_by_default_the_context_is_what_belongs_to_the_run(board: Board) -> None:
    clerk = Clerk(pack)
    board.agent("clerk").consumes(Order).publishes(Parcel).with_engines(clerk)
    await board.publish(Order(item="stranger"))
    for item in ("a", "b", "c"):
        await board.publish(Order(item=item), correlation_id="one")
        await idle(board)
    assert clerk.seen[1:] == [[], ["a", "a"], ["a", "a", "b", "b"]], "and never the input itself"


async def test_an_item_says_where_it_comes_from(board: Board) -> None:
    clerk = Clerk()
    board.agent("clerk").consumes(Order).with_engines(clerk)
    first = await board.publish(Payment(item="coin"), correlation_id="one", tags={"paid"})
    await board.publish(Order(), correlation_id="one")
    await idle(board)
    (item,) = clerk.tasks[0].context.items
    assert item["artifact_id"] == first.id
    assert (item["type"], item["produced_by"]) == ("shop.Payment", "user")
    assert item["payload"] == {"item": "coin", "amount": 0}
    assert (item["tags"], item["correlation_id"]) == (["paid"], "one")
    assert datetime.fromisoformat(item["created_at"]) == first.created_at
    assert item["run"] == first.run


async def test_a_limit_gives_the_last_ones(board: Board) -> None:
    clerk = Clerk()
    board.agent("clerk").consumes(Order).with_engines(clerk).with_context(
        DefaultCorrelationProvider(limit=2)
    )
    for item in ("a", "b", "c"):
        await board.publish(Payment(item=item), correlation_id="one")
    await board.publish(Order(), correlation_id="one")
    await idle(board)
    assert clerk.seen == [["b", "c"]]


PROVIDERS: dict[str, ContextProvider] = {
    "default": DefaultCorrelationProvider(),
    "filtered": FilteredContextProvider(FilterConfig(types={"Payment"})),
    "composite": CompositeProvider(DefaultCorrelationProvider(), FilteredContextProvider()),
    "redacting": RedactingProvider(DefaultCorrelationProvider(), keys={"amount"}),
    "one that forgets": everything_there,
}


@pytest.mark.parametrize("name", PROVIDERS)
async def test_what_the_agent_may_not_see_is_in_no_context(board: Board, name: str) -> None:
    clerk = Clerk()
    board.agent("clerk").consumes(Order).with_engines(clerk).with_context(PROVIDERS[name])
    board.register(Payment)
    for number, visibility in enumerate(HIDDEN):
        secret = Payment(item=f"secret {number}")
        await board.publish(secret, correlation_id="one", visibility=visibility)
    await board.publish(Payment(item="open"), correlation_id="one")
    await board.publish(Payment(item="mine"), correlation_id="one", visibility=Private({"clerk"}))
    await board.publish(Order(item="now"), correlation_id="one")
    await idle(board)
    shown = [item for item in clerk.seen[0] if item != "now"]
    assert shown == ["open", "mine"]
    assert "secret" not in clerk.tasks[0].prompt


async def test_a_limit_counts_what_can_be_seen(board: Board) -> None:
    clerk = Clerk()
    board.agent("clerk").consumes(Order).with_engines(clerk).with_context_filter(
        filters=FilterConfig(types={"Payment"}), limit=3
    )
    board.register(Payment)
    for item in ("a", "b", "c"):
        await board.publish(Payment(item=item))
    await board.publish_many([Payment(item="hidden")] * 50, visibility=Private({"other"}))
    await board.publish(Order())
    await idle(board)
    assert clerk.seen == [["a", "b", "c"]]


async def test_an_agent_of_another_tenant_is_refused(board: Board) -> None:
    agent = board.agent("clerk").tenant("globex")
    agent.consumes(Order).with_engines(Clerk())
    with pytest.raises(UsageError):
        await board.publish(Order())


async def test_labels_open_what_is_for_them(board: Board) -> None:
    clerk = Clerk()
    agent = board.agent("clerk").consumes(Order).with_engines(clerk)
    agent.labels("boss").tenant("local").with_context(everything_there)
    board.register(Payment)
    for number, visibility in enumerate(HIDDEN):
        await board.publish(Payment(item=str(number)), visibility=visibility)
    await board.publish(Order(item="now"), visibility=Private({"clerk"}))
    await idle(board)
    assert [item for item in clerk.seen[0] if item != "now"] == ["1"]


def chosen(app: Loom, said: set[str]) -> tuple[Board, Clerk]:
    """A board with one agent, and providers where it is said."""

    class Engine(Clerk):
        context_provider = Giving("engine") if "engine" in said else None

    board, clerk = app.board(), Engine()
    agent = board.agent("clerk").with_engines(clerk)
    agent.consumes(
        Order, context_provider=Giving("subscription") if "subscription" in said else None
    )
    if "agent" in said:
        agent.with_context(Giving("agent"))
    return board, clerk


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({"subscription", "engine", "agent"}, "subscription"),
        ({"subscription", "agent"}, "subscription"),
        ({"engine", "agent"}, "engine"),
        ({"agent"}, "agent"),
        (set(), "default"),
    ],
)
async def test_the_nearest_provider_is_chosen(app: Loom, said: set[str], expected: str) -> None:
    board, clerk = chosen(app, said)
    await board.publish(Payment(item="default"), correlation_id="one")
    await board.publish(Order(), correlation_id="one")
    await idle(board)
    assert clerk.seen == [[expected]]
    (gathered,) = await facts(app, "context.gathered")
    named = {"default": "DefaultCorrelationProvider"}.get(expected, "Giving")
    assert gathered.provider == named


async def test_an_engine_has_its_own_context_and_the_others_share_theirs(
    app: Loom, board: Board
) -> None:
    class Special(Clerk):
        context_provider = Giving("special")

    first, second, third, shared = Clerk(), Special(), Clerk(), Giving("shared")
    board.agent("clerk").consumes(Order).with_engines(first, second, third).with_context(shared)
    await board.publish(Order())
    await idle(board)
    assert [each.seen for each in (first, second, third)] == [
        [["shared"]],
        [["special"]],
        [["shared"]],
    ]
    assert len(shared.requests) == 1, "once for all who share it"
    assert len(await facts(app, "context.gathered")) == 2
    for each, word in ((first, "shared"), (second, "special"), (third, "shared")):
        assert word in each.tasks[0].prompt


async def test_each_subscription_may_have_its_own_provider(board: Board) -> None:
    clerk = Clerk()
    board.agent("clerk").with_engines(clerk).with_context(Giving("agent")).consumes(
        Order, context_provider=Giving("orders")
    ).consumes(Payment)
    await board.publish(Order())
    await idle(board)
    await board.publish(Payment())
    await idle(board)
    assert clerk.seen == [["orders"], ["agent"]]


async def test_a_provider_knows_whom_it_gives_context(board: Board) -> None:
    giving = Giving("x")
    agent = board.agent("clerk").description("You pack.").labels("boss").tenant("local")
    agent.consumes(Order).with_engines(Clerk()).with_context(giving, config={"words": 3})
    order = await board.publish(Order(), correlation_id="one")
    await idle(board)
    (request,) = giving.requests
    assert (request.agent.name, request.agent.description) == ("clerk", "You pack.")
    assert (request.agent.labels, request.agent.tenant) == ({"boss"}, "local")
    assert [each.id for each in request.inputs] == [order.id]
    assert (request.correlation_id, request.config) == ("one", {"words": 3})
    assert (request.ctx.run.id, request.ctx.turn) == (order.run, 1)


@pytest.mark.parametrize("broken", [failing, dawdling])
async def test_a_provider_that_fails_is_replaced_by_its_fallback(
    app: Loom, board: Board, broken: Any
) -> None:
    clerk, fallback = Clerk(), Giving("fallback")
    board.agent("clerk").consumes(Order).with_engines(clerk).with_context(
        broken, fallback=fallback, timeout=0.1, config={"a": 1}
    )
    await board.publish(Order())
    await idle(board)
    assert clerk.seen == [["fallback"]]
    assert fallback.requests[0].config == {"a": 1}
    (failed,) = await facts(app, "provider.failed")
    assert (failed.provider, failed.fallback) == (broken.__name__, "Giving")
    (gathered,) = await facts(app, "context.gathered")
    assert (gathered.provider, gathered.fallback) == ("Giving", True)


@pytest.mark.parametrize(
    ("broken", "problem"), [(failing, "the archive burns"), (dawdling, "0.1 s")]
)
async def test_without_a_fallback_the_turn_fails(
    app: Loom, board: Board, broken: Any, problem: str
) -> None:
    clerk = Clerk()
    board.agent("clerk").consumes(Order).with_engines(clerk).with_context(broken, timeout=0.1)
    order = await board.publish(Order())
    (failure,) = await failures(board)
    assert problem in failure
    assert clerk.tasks == [], "an empty context is not the same as none"
    assert len(await facts(app, "provider.failed")) == 1
    assert await board.retry(order) == 1, "and can be tried again"
    assert len(await failures(board)) == 1


async def test_a_filter_chooses_from_the_whole_board(board: Board) -> None:
    clerk = Clerk()
    board.agent("clerk").consumes(Order).with_engines(clerk).with_context_filter(
        filters=FilterConfig(
            types={"Payment"}, tags=TagFilter(include={"won"}), order="-created_at"
        ),
        limit=2,
    )
    for item, tag in (("a", "won"), ("b", "lost"), ("c", "won"), ("d", "won")):
        await board.publish(Payment(item=item), tags={tag})
    await board.publish(Order())
    await idle(board)
    assert clerk.seen == [["d", "c"]]


async def test_what_is_redacted_is_nowhere_but_where_it_was_published(
    app: Loom, board: Board
) -> None:
    clerk = Clerk()
    board.agent("clerk").consumes(Order).with_engines(clerk).with_context(
        RedactingProvider(DefaultCorrelationProvider(), keys={"item"})
    )
    await board.publish(Payment(item="hush", amount=7), correlation_id="one")
    order = await board.publish(Order(item="psst", number=3), correlation_id="one")
    await idle(board)
    (task,) = clerk.tasks
    assert "hush" not in task.prompt and "psst" not in task.prompt
    assert task.context.items[0]["payload"] == {"amount": 7}
    assert task.inputs[0].payload == {"number": 3}
    assert order.run is not None
    for event in await app.history.events(order.run):
        if event.kind != "artifact.published":
            assert "hush" not in str(event.data) and "psst" not in str(event.data)


async def test_a_batch_sees_what_belongs_to_each_of_its_inputs(board: Board) -> None:
    clerk = Clerk()
    board.agent("clerk").consumes(Order, batch=Batch(2)).with_engines(clerk)
    for number in ("1", "2"):
        await board.publish(Payment(item=f"pay {number}"), correlation_id=number)
        await board.publish(Order(item=f"order {number}"), correlation_id=number)
        await idle(board)
    assert clerk.seen == [["pay 1", "pay 2"]]


async def test_the_context_is_gathered_once_and_is_what_the_frame_shows(
    app: Loom, board: Board
) -> None:
    giving = Giving("kept")

    def make(task: Task) -> Any:
        task.context.items.clear()
        return "no data" if len(task.exchanges) < 2 else Parcel()

    clerk = Clerk(make)
    board.agent("clerk").consumes(Order).publishes(Parcel).with_engines(clerk).with_context(giving)
    order = await board.publish(Order())
    await idle(board)
    assert len(giving.requests) == 1
    assert len(clerk.tasks) == 3
    assert "kept" in clerk.tasks[2].prompt
    (frame,) = await facts(app, "frame.assembled", order.run)
    assert "artifact" in {segment.kind for segment in frame.segments}
    assert len(await everything(board, "Parcel", reader=Reader("clerk"))) == 1
