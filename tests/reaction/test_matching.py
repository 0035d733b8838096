"""Who is woken by what is published, and what is on record about everybody else."""

import asyncio
from typing import Any

import pytest
from pydantic import BaseModel

from tests.reaction.scenes import (
    SOON,
    Clerk,
    Order,
    Parcel,
    Payment,
    Receipt,
    everything,
    facts,
    failures,
    idle,
    pack,
    statuses,
    verdicts,
)
from turnloom import Board, Loom
from turnloom.board.spec import Labelled, Private, Reader, TagFilter, Tenant, artifact_type
from turnloom.errors import PredicateFailed, UnknownType, UsageError
from turnloom.reaction.spec import Batch


async def test_everybody_who_subscribes_to_a_type_is_woken_and_nobody_else(board: Board) -> None:
    first, second, other = Clerk(), Clerk(), Clerk()
    board.agent("first").consumes(Order).with_engines(first)
    board.agent("second").consumes(Order).with_engines(second)
    board.agent("other").consumes(Payment).with_engines(other)
    await board.publish(Order(item="tea"))
    await idle(board)
    assert first.given == second.given == [["tea"]]
    assert other.given == []


async def test_a_type_that_nobody_subscribes_to_wakes_nobody(app: Loom, board: Board) -> None:
    clerk = Clerk()
    board.agent("clerk").consumes(Order).with_engines(clerk)
    board.register(Receipt)
    await board.publish(Receipt(total=3))
    await idle(board)
    assert [each.payload for each in await everything(board)] == [{"total": 3}]
    assert clerk.given == []
    assert await statuses(app) == ["finished"]


async def test_each_subscription_of_an_agent_wakes_it(board: Board) -> None:
    clerk = Clerk()
    board.agent("clerk").consumes(Order).consumes(Payment).with_engines(clerk)
    await board.publish(Order(item="tea"))
    await board.publish(Payment(item="milk"))
    await idle(board)
    assert sorted(clerk.given) == [["milk"], ["tea"]]


def is_large(order: Order) -> bool:
    return order.number > 5


def is_small(order: Order) -> bool:
    return order.number < 5


def is_order(order: Order) -> bool:
    return True


async def is_tea(order: Order) -> bool:
    await asyncio.sleep(0)
    return order.item == "tea"


class IsEven:
    """A condition that is an object, and async."""

    async def __call__(self, order: Order) -> bool:
        return order.number % 2 == 0


async def test_where_is_asked_of_the_value_and_may_be_async(app: Loom, board: Board) -> None:
    clerk = Clerk()
    board.agent("clerk").consumes(Order, where=[is_large, is_tea, IsEven()]).with_engines(clerk)
    small = await board.publish(Order(number=1))
    milk = await board.publish(Order(item="milk", number=8))
    odd = await board.publish(Order(number=7))
    wanted = await board.publish(Order(number=8))
    await idle(board)
    assert [task.inputs[0].id for task in clerk.tasks] == [wanted.id]
    for number, each in enumerate((small, milk, odd), 1):
        said = ("where", f"condition {number} does not hold")
        assert await verdicts(app, each) == {"clerk#1": said}
    assert await verdicts(app, wanted) == {"clerk#1": ("taken", "")}


async def test_a_condition_that_raises_is_reported_and_not_taken_for_no(
    app: Loom, board: Board, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(order: Order) -> bool:
        raise LookupError("no such shelf")

    clerk, other = Clerk(), Clerk()
    board.agent("clerk").consumes(Order, where=broken).with_engines(clerk)
    board.agent("other").consumes(Order).with_engines(other)
    order = await board.publish(Order())
    errors = await board.run_until_idle(SOON, raise_errors=False)
    assert errors is not None
    (failed,) = errors.exceptions
    assert isinstance(failed, PredicateFailed)
    assert (failed.subscription, failed.artifact) == ("clerk#1", order.id)
    assert [each.name for each in caplog.records] == ["turnloom.board"]
    timeline = await app.explain.timeline(order.run or "")
    assert any("clerk#1 no: condition 1 failed: LookupError" in row.note for row in timeline.rows)
    assert clerk.given == []
    assert other.given == [["tea"]]
    verdict, detail = (await verdicts(app, order))["clerk#1"]
    assert verdict == "where_failed"
    assert "LookupError: no such shelf" in detail


async def test_only_those_are_heard_who_are_named(app: Loom, board: Board) -> None:
    from_packer, from_user = Clerk(), Clerk()
    board.agent("packer").consumes(Order).publishes(Parcel).with_engines(Clerk(pack))
    board.agent("insider").consumes(Parcel, from_agents="packer").with_engines(from_packer)
    board.agent("outsider").consumes(Parcel, from_agents={"user"}).with_engines(from_user)
    await board.publish(Order(item="tea"))
    milk = await board.publish(Parcel(item="milk"))
    await idle(board)
    assert from_packer.given == [["tea"]]
    assert from_user.given == [["milk"]]
    assert (await verdicts(app, milk))["insider#1"][0] == "from_agents"


ASKED: dict[str, tuple[Any, list[list[Any]]]] = {
    "a set asks for any of them": ({"hot", "rush"}, [["hot"], ["rush"], ["both"]]),
    "all of them": (TagFilter(include={"hot", "rush"}, match="all"), [["both"]]),
    "some and not others": (TagFilter(include={"hot"}, exclude={"rush"}), [["hot"]]),
    "none of these": (TagFilter(exclude={"rush", "hot"}), [["plain"]]),
}


@pytest.mark.parametrize("case", ASKED)
async def test_tags_choose(app: Loom, board: Board, case: str) -> None:
    tags, expected = ASKED[case]
    clerk = Clerk()
    board.agent("clerk").consumes(Order, tags=tags).with_engines(clerk)
    published = {
        item: await board.publish(Order(item=item), tags=given)
        for item, given in {
            "hot": {"hot"},
            "rush": {"rush"},
            "both": {"hot", "rush"},
            "plain": frozenset[str](),
        }.items()
    }
    await idle(board)
    assert sorted(clerk.given) == sorted(expected)
    for item, artifact in published.items():
        taken = (await verdicts(app, artifact))["clerk#1"][0] == "taken"
        assert taken == ([item] in expected)


async def test_an_agent_is_not_woken_by_what_it_makes(app: Loom, board: Board) -> None:
    clerk = Clerk(lambda task: Order(item=task.inputs[0].payload["item"] + "!"))
    board.agent("clerk").consumes(Order).publishes(Order).with_engines(clerk)
    await board.publish(Order(item="tea"))
    await idle(board)
    assert clerk.given == [["tea"]]
    own = next(each for each in await everything(board) if each.produced_by == "clerk")
    assert {who: code for who, (code, _) in (await verdicts(app, own)).items()} == {
        "clerk#1": "own"
    }


async def test_an_agent_that_may_is_woken_by_what_it_makes(board: Board) -> None:
    def count_down(task: Any) -> Order | None:
        left = int(task.inputs[0].payload["number"])
        return Order(number=left - 1) if left else None

    clerk = Clerk(count_down)
    agent = board.agent("clerk").consumes(Order).publishes(Order).with_engines(clerk)
    agent.prevent_self_trigger(False)
    await board.publish(Order(number=2))
    await idle(board)
    assert [task.inputs[0].payload["number"] for task in clerk.tasks] == [2, 1, 0]


async def test_what_an_agent_may_not_see_does_not_wake_it(app: Loom, board: Board) -> None:
    guest, chief = Clerk(), Clerk()
    board.agent("guest").consumes(Order).with_engines(guest)
    board.agent("chief").labels("boss", "east").consumes(Order).with_engines(chief)
    hidden = await board.publish(Order(item="labelled"), visibility=Labelled({"boss", "east"}))
    await board.publish(Order(item="more"), visibility=Labelled({"boss", "west"}))
    await board.publish(Order(item="tenant"), visibility=Tenant("acme"))
    await board.publish(Order(item="private"), visibility=Private({"guest"}))
    await idle(board)
    assert guest.given == [["private"]]
    assert chief.given == [["labelled"]]
    assert (await verdicts(app, hidden))["guest#1"] == ("not_visible", "")
    assert await everything(board) == []
    assert len(await everything(board, reader=Reader(labels={"boss", "east"}))) == 1


async def test_the_urgent_subscription_is_served_first(app: Loom, board: Board) -> None:
    clerk = Clerk()
    agent = board.agent("clerk").max_concurrency(1).with_engines(clerk)
    agent.consumes(Order).consumes(Order, priority=-1, where=is_order)
    agent.consumes(Order, priority=9, where=is_small).consumes(Order, where=is_small)
    await board.publish(Order())
    await idle(board)
    taken = [each.subscription for each in await facts(app, "artifact.consumed")]
    assert taken == ["clerk#3", "clerk#1", "clerk#4", "clerk#2"]
    assert [task.turn for task in clerk.tasks] == [1, 2, 3, 4]


async def test_what_an_engine_is_given_is_its_own(board: Board) -> None:
    def spoil(task: Any) -> None:
        task.inputs[0].payload["item"] = "spoilt"

    clerk = Clerk()
    board.agent("spoiler").consumes(Order, priority=1).with_engines(Clerk(spoil))
    board.agent("clerk").consumes(Order).with_engines(clerk)
    order = await board.publish(Order(item="tea"))
    await idle(board)
    assert clerk.given == [["tea"]]
    assert (await everything(board))[0].payload == order.payload == {"item": "tea", "number": 0}


async def test_the_same_artifact_wakes_a_subscription_once(board: Board) -> None:
    clerk = Clerk()
    board.agent("clerk").consumes(Order).with_engines(clerk)
    first = await board.publish(Order(), id="order-1")
    assert await board.publish(Order(), id="order-1") == first
    await idle(board)
    assert await board.publish(Order(), id="order-1") == first
    await idle(board)
    assert len(clerk.tasks) == 1


async def test_a_type_is_known_by_its_simple_name(board: Board) -> None:
    clerk = Clerk()
    board.agent("packer").consumes(Order).publishes("shop.Order").with_engines(Clerk())
    board.agent("clerk").consumes("Order").with_engines(clerk)
    await board.publish(Order(item="tea"))
    await idle(board)
    assert clerk.given == [["tea"]]


async def test_types_that_are_not_known_are_refused(board: Board) -> None:
    class Plain(BaseModel):
        text: str = ""

    agent = board.agent("clerk").with_engines(Clerk())
    with pytest.raises(UnknownType, match="'Odrer'"):
        agent.consumes("Odrer")
    with pytest.raises(UsageError, match="@artifact_type"):
        await board.publish(Plain())
    with pytest.raises(UsageError):
        await board.publish({"text": "words"})  # type: ignore[arg-type]
    assert await everything(board) == []


async def test_two_types_of_one_simple_name_are_told_apart(app: Loom, board: Board) -> None:
    @artifact_type(name="depot.Order")
    class OtherOrder(BaseModel):
        item: str = ""

    board.register(Order, OtherOrder)
    clerk = Clerk()
    agent = board.agent("clerk").with_engines(clerk)
    with pytest.raises(UnknownType, match=r"'shop.Order'.*'depot.Order'"):
        agent.consumes("Order")
    agent.consumes("depot.Order")
    await board.publish(Order(item="tea"))
    await board.publish(OtherOrder(item="crate"))
    await idle(board)
    assert clerk.given == [["crate"]]


async def test_an_engine_that_is_missing_is_named_before_anything_runs(board: Board) -> None:
    board.agent("clerk").consumes(Order)
    with pytest.raises(UsageError, match="'clerk'"):
        await board.publish(Order())
    assert await failures(board) == []


async def test_a_collecting_subscription_judges_as_any_other(app: Loom, board: Board) -> None:
    clerk = Clerk()
    board.agent("clerk").consumes(Order, where=is_large, tags={"hot"}, batch=Batch(2)).with_engines(
        clerk
    )
    for number in (9, 1, 8):
        await board.publish(Order(number=number), tags={"hot"})
        await idle(board)
    cold = await board.publish(Order(number=9))
    await idle(board)
    assert [[each.payload["number"] for each in task.inputs] for task in clerk.tasks] == [[9, 8]]
    assert (await verdicts(app, cold))["clerk#1"][0] == "tags"
