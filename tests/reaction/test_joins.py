"""Inputs that belong together by a key, over all correlations."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from pydantic import BaseModel

from tests.reaction.scenes import (
    MINUTE,
    SOON,
    Clerk,
    Order,
    Parcel,
    Payment,
    everything,
    facts,
    idle,
    pack,
    verdicts,
)
from tests.support.timed import Timed
from turnloom import Board, Loom
from turnloom.board.spec import Private, artifact_type
from turnloom.errors import PredicateFailed, UsageError
from turnloom.reaction.spec import Join


@artifact_type(name="shop.Label")
class Label(BaseModel):
    """Something with a key of any kind."""

    key: Any = None
    item: str = ""


async def by_item(value: Any) -> Any:
    await asyncio.sleep(0)
    return value.item.lower()


@pytest.mark.parametrize("by", ["item", lambda value: value.item.lower(), by_item])
async def test_a_join_pairs_by_key_over_all_correlations(board: Board, by: Any) -> None:
    clerk = Clerk()
    board.agent("clerk").consumes(Order, Payment, join=Join(by)).with_engines(clerk)
    await board.publish(Payment(item="milk", amount=2))
    await board.publish(Order(item="tea", number=1))
    await board.publish(Order(item="milk", number=2), correlation_id="elsewhere")
    await idle(board)
    assert [[each.type for each in task.inputs] for task in clerk.tasks] == [
        ["shop.Order", "shop.Payment"]
    ]
    assert clerk.given == [["milk", "milk"]]
    await board.publish(Payment(item="tea", amount=1))
    await idle(board)
    assert clerk.given == [["milk", "milk"], ["tea", "tea"]]


async def test_a_key_may_lie_deep(board: Board) -> None:
    clerk = Clerk()
    board.agent("clerk").consumes(Label, Label, join=Join("key.id")).with_engines(clerk)
    for item, id in (("a", 1), ("b", 2), ("c", 1)):
        await board.publish(Label(key={"id": id}, item=item))
        await idle(board)
    assert clerk.given == [["a", "c"]]


KEYS: list[Any] = ["1", 1, 1.5, True, [1, "a"], {"a": [1], "b": None}, "", False, 0, []]


def turned(key: Any) -> Any:
    """The same key, with its own keys in another order."""
    return dict(reversed(key.items())) if isinstance(key, dict) else key


async def test_a_key_is_any_json_and_keys_of_different_kinds_differ(board: Board) -> None:
    clerk = Clerk()
    board.agent("clerk").consumes(Label, Label, join=Join("key")).with_engines(clerk)
    await board.publish_many([Label(key=key, item="first") for key in KEYS])
    await idle(board)
    await board.publish_many([Label(key=turned(key), item="second") for key in KEYS])
    await idle(board)
    assert clerk.given == [["first", "second"]] * len(KEYS)
    joined = [[each.payload["key"] for each in task.inputs] for task in clerk.tasks]
    assert sorted(map(repr, joined)) == sorted(repr([key, key]) for key in KEYS)


async def test_what_has_no_key_is_on_record(app: Loom, board: Board) -> None:
    def broken(value: Any) -> Any:
        raise LookupError("no label")

    board.agent("path").consumes(Label, Label, join=Join("key.id")).with_engines(Clerk())
    board.agent("broken").consumes(Label, Label, join=Join(broken)).with_engines(Clerk())
    board.agent("strange").consumes(Label, Label, join=Join(lambda _: object())).with_engines(
        Clerk()
    )
    label = await board.publish(Label(key="flat"))
    errors = await board.run_until_idle(SOON, raise_errors=False)
    assert errors is not None
    failed = [each for each in errors.exceptions if isinstance(each, PredicateFailed)]
    assert {each.subscription for each in failed} == {"broken#1", "strange#1"}
    said = await verdicts(app, label)
    assert said["path#1"][0] == "no_key"
    assert said["broken#1"] == ("key_failed", "LookupError: no label")
    assert said["strange#1"][0] == "key_failed"


async def test_what_a_subscription_does_not_want_is_not_joined(board: Board) -> None:
    clerk = Clerk()
    board.agent("clerk").consumes(
        Order, Payment, join=Join("item"), where=lambda value: value != Order(number=1)
    ).with_engines(clerk)
    await board.publish(Order(number=1))
    await board.publish(Order(number=2), visibility=Private({"other"}))
    await board.publish(Order(number=3))
    await board.publish(Payment())
    await idle(board)
    assert [[task.inputs[0].payload["number"]] for task in clerk.tasks] == [[3]]


async def test_the_surplus_of_a_key_stays(board: Board) -> None:
    clerk = Clerk()
    board.agent("clerk").consumes(Order, Payment, join=Join("item")).with_engines(clerk)
    for number in (1, 2):
        await board.publish(Order(number=number))
        await idle(board)
    for amount in (1, 2):
        await board.publish(Payment(amount=amount))
        await idle(board)
        assert len(clerk.tasks) == amount
    pairs = [[t.inputs[0].payload["number"], t.inputs[1].payload["amount"]] for t in clerk.tasks]
    assert pairs == [[1, 1], [2, 2]]


async def test_a_set_has_a_run_of_its_own_that_names_its_parents(app: Loom, board: Board) -> None:
    clerk = Clerk(pack)
    board.agent("clerk").consumes(Order, Payment, join=Join("item")).publishes(Parcel).with_engines(
        clerk
    )
    order, payment = await board.publish(Order()), await board.publish(Payment())
    await idle(board)
    (parcel,) = await everything(board, "Parcel")
    assert parcel.run not in (order.run, payment.run)
    assert parcel.parents == (order.id, payment.id)
    (opened,) = await facts(app, "run.opened")
    assert (opened.run, opened.artifacts) == (parcel.run, parcel.parents)
    (started,) = await facts(app, "run.started", parcel.run)
    assert {order.run, payment.run} < {*started.parents}
    (taken,) = [each for each in await facts(app, "artifact.consumed") if each.run]
    assert (taken.agent, taken.subscription, taken.run) == ("clerk", "clerk#1", parcel.run)


async def test_a_window_in_artifacts_lets_old_ones_go(app: Loom, board: Board) -> None:
    clerk = Clerk()
    board.agent("clerk").consumes(Order, Payment, join=Join("item", within=2)).with_engines(clerk)
    old = await board.publish(Order(item="old"))
    for item in ("a", "b"):
        await idle(board)
        await board.publish(Order(item=item))
    await idle(board)
    await board.publish(Payment(item="old"))
    await idle(board)
    (expired,) = await facts(app, "join.expired")
    assert (expired.subscription, expired.key) == ("clerk#1", '"old"')
    assert expired.artifacts == (old.id,)
    await board.publish(Payment(item="b"))
    await idle(board)
    assert clerk.given == [["b", "b"]]


async def test_the_last_artifact_of_a_window_is_in_time(board: Board) -> None:
    clerk = Clerk()
    board.agent("clerk").consumes(Order, Payment, join=Join("item", within=2)).with_engines(clerk)
    for each in (Order(item="tea"), Order(item="other"), Payment(item="tea")):
        await board.publish(each)
        await idle(board)
    assert clerk.given == [["tea", "tea"]]


async def test_a_window_in_time_lets_old_ones_go_and_says_so(timed: Timed) -> None:
    board, clerk = timed.board(), Clerk()
    board.agent("clerk").consumes(
        Order, Payment, join=Join("item", within=2 * MINUTE)
    ).with_engines(clerk)
    old = await board.publish(Order(item="old"))
    await idle(board)
    timed.clock.advance(MINUTE)
    await board.publish(Order(item="young"))
    await idle(board)
    timed.clock.advance(MINUTE)

    async def is_expired() -> bool:
        return bool(await facts(timed, "join.expired"))

    await board.run_until(is_expired, SOON)
    await idle(board)
    (expired,) = await facts(timed, "join.expired")
    assert (expired.key, expired.artifacts) == ('"old"', (old.id,))
    for item in ("old", "young"):
        await board.publish(Payment(item=item))
        await idle(board)
    assert clerk.given == [["young", "young"]]


async def test_what_is_too_late_finds_nobody_also_if_nobody_noticed(timed: Timed) -> None:
    board, clerk = timed.board(), Clerk()
    board.agent("clerk").consumes(Order, Payment, join=Join("item", within=MINUTE)).with_engines(
        clerk
    )
    await board.publish(Order())
    await idle(board)
    timed.clock.advance(2 * MINUTE)
    await board.publish(Payment())
    await idle(board)
    assert clerk.tasks == []
    assert len(await facts(timed, "join.expired")) == 1


async def test_only_those_of_a_key_go_that_have_waited_too_long(timed: Timed) -> None:
    board, clerk = timed.board(), Clerk()
    board.agent("clerk").consumes(
        Order, Payment, join=Join("item", within=2 * MINUTE)
    ).with_engines(clerk)
    first = await board.publish(Order(number=1))
    await idle(board)
    timed.clock.advance(MINUTE)
    await board.publish(Order(number=2))
    await idle(board)
    timed.clock.advance(MINUTE)
    await board.publish(Payment())
    await idle(board)
    (expired,) = await facts(timed, "join.expired")
    assert expired.artifacts == (first.id,)
    assert [task.inputs[0].payload["number"] for task in clerk.tasks] == [2]


@pytest.mark.parametrize("within", [0, -1, 1.5, timedelta(0), "1h", True])
def test_a_window_is_a_time_or_a_number(within: Any) -> None:
    with pytest.raises(UsageError, match="Join.within"):
        Join("item", within)
