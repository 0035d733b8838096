"""Inputs that wait for each other within one correlation."""

import pytest

from tests.reaction.scenes import (
    Clerk,
    Order,
    Parcel,
    Payment,
    Receipt,
    everything,
    facts,
    idle,
    pack,
    statuses,
)
from turnloom import Board, Loom


@pytest.fixture
def clerk(board: Board) -> Clerk:
    clerk = Clerk(pack)
    board.agent("clerk").consumes(Order, Payment).publishes(Parcel).with_engines(clerk)
    return clerk


@pytest.mark.parametrize("is_first", [True, False])
async def test_an_agent_waits_for_one_of_each(board: Board, clerk: Clerk, is_first: bool) -> None:
    things = [Order(item="tea"), Payment(item="coin")]
    for each in things if is_first else reversed(things):
        assert clerk.given == []
        await board.publish(each, correlation_id="one")
        await idle(board)
    assert clerk.given == [["tea", "coin"]], "as declared, however they come"


async def test_a_type_that_is_named_twice_is_needed_twice(board: Board) -> None:
    clerk = Clerk()
    board.agent("clerk").consumes(Order, Payment, Order).with_engines(clerk)
    for each in (Order(item="a"), Payment(item="coin"), Order(item="b")):
        assert clerk.given == []
        await board.publish(each, correlation_id="one")
        await idle(board)
    assert clerk.given == [["a", "coin", "b"]]


async def test_what_is_too_much_stays_for_the_next_round(board: Board, clerk: Clerk) -> None:
    for each in ("a", "b", "c"):
        await board.publish(Order(item=each), correlation_id="one")
    await board.publish(Payment(item="1"), correlation_id="one")
    await idle(board)
    assert clerk.given == [["a", "1"]]
    await board.publish(Payment(item="2"), correlation_id="one")
    await board.publish(Payment(item="3"), correlation_id="one")
    await idle(board)
    assert sorted(clerk.given) == [["a", "1"], ["b", "2"], ["c", "3"]]


async def test_inputs_of_different_correlations_do_not_meet(
    app: Loom, board: Board, clerk: Clerk
) -> None:
    await board.publish(Order(item="a"), correlation_id="one")
    await board.publish(Payment(item="2"), correlation_id="two")
    await board.publish(Payment(item="nobody's"))
    await idle(board)
    assert clerk.given == []
    assert await statuses(app) == ["collecting"] * 3
    await board.publish(Payment(item="1"), correlation_id="one")
    await board.publish(Order(item="b"), correlation_id="two")
    await idle(board)
    assert sorted(clerk.given) == [["a", "1"], ["b", "2"]]
    assert await statuses(app) == ["finished", "finished", "collecting"]


async def test_a_run_that_began_a_correlation_of_its_own_is_published_in(
    app: Loom, board: Board, clerk: Clerk
) -> None:
    order = await board.publish(Order(item="a"))
    await idle(board)
    payment = await board.publish(Payment(item="1"), correlation_id=order.correlation_id)
    await idle(board)
    assert clerk.given == [["a", "1"]]
    assert payment.run == order.run
    later = await board.publish(Order(item="b"), correlation_id=order.correlation_id)
    await idle(board)
    assert later.run != order.run, "that has ended"
    assert await statuses(app) == ["finished", "collecting"]


async def test_what_others_make_is_waited_for_as_well(board: Board) -> None:
    shipper = Clerk()
    board.agent("packer").consumes(Order).publishes(Parcel).with_engines(Clerk(pack))
    board.agent("cashier").consumes(Order).publishes(Payment).with_engines(
        Clerk(lambda task: Payment(item="coin"))
    )
    board.agent("shipper").consumes(Payment, Parcel).with_engines(shipper)
    await board.publish(Order(item="tea"))
    await idle(board)
    assert shipper.given == [["coin", "tea"]]


async def test_every_output_names_its_run_and_its_inputs(
    app: Loom, board: Board, clerk: Clerk
) -> None:
    order = await board.publish(Order(item="tea"), correlation_id="one")
    payment = await board.publish(Payment(), correlation_id="one")
    await idle(board)
    (parcel,) = await everything(board, "Parcel")
    assert parcel.parents == (order.id, payment.id)
    assert parcel.run == order.run == payment.run
    assert parcel.correlation_id == "one"
    assert parcel.produced_by == "clerk"
    (taken,) = await facts(app, "artifact.consumed")
    assert (taken.agent, taken.artifacts, taken.turn) == ("clerk", parcel.parents, 1)
    items, _ = await board.query_artifacts(embed_meta=True)
    consumed = {each.id: [c.agent for c in each.consumptions] for each in items}  # type: ignore[attr-defined]
    assert consumed == {order.id: ["clerk"], payment.id: ["clerk"], parcel.id: []}


async def test_one_artifact_may_go_to_several_gates(board: Board) -> None:
    one, two = Clerk(), Clerk()
    board.agent("one").consumes(Order, Payment).with_engines(one)
    board.agent("two").consumes(Order, Receipt).with_engines(two)
    await board.publish(Order(item="tea"), correlation_id="c")
    await board.publish(Payment(item="coin"), correlation_id="c")
    await idle(board)
    assert one.given == [["tea", "coin"]]
    assert two.tasks == []
    await board.publish(Receipt(total=1), correlation_id="c")
    await idle(board)
    assert [[each.type for each in task.inputs] for task in two.tasks] == [
        ["shop.Order", "shop.Receipt"]
    ]


async def test_inputs_that_wait_survive_a_restart(store: str) -> None:
    clerks = [Clerk(), Clerk()]
    for clerk, thing in zip(clerks, (Order(item="tea"), Payment(item="coin")), strict=True):
        async with Loom(store=store) as app:
            board = app.board()
            board.agent("clerk").consumes(Order, Payment).with_engines(clerk)
            await board.publish(thing, correlation_id="one")
            await idle(board)
    assert [clerk.given for clerk in clerks] == [[], [["tea", "coin"]]]
