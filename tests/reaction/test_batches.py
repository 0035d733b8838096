"""So many at a time: by size, by time, and when the board is closed."""

from typing import Any

import pytest

from tests.reaction.scenes import (
    MINUTE,
    SOON,
    Clerk,
    Order,
    Parcel,
    Payment,
    Receipt,
    everything,
    facts,
    idle,
    pack,
)
from tests.support.timed import Timed
from turnloom import Board, Loom
from turnloom.board.spec import Artifact
from turnloom.reaction.spec import Batch, Join


async def received(app: Loom, board: Board, number: int) -> None:
    """Wait until so many artifacts have come to where they are collected."""

    async def has_come() -> bool:
        return len(await facts(app, "artifact.offered")) == 2 * number

    await board.run_until(has_come, SOON)


async def test_a_batch_is_taken_at_its_size(board: Board) -> None:
    clerk = Clerk(lambda task: Receipt(total=len(task.inputs)))
    board.agent("clerk").consumes(Order, batch=Batch(3)).publishes(Receipt).with_engines(clerk)
    orders: list[Artifact] = []
    for number in range(7):
        orders.append(await board.publish(Order(item=str(number))))
        await idle(board)
    assert clerk.given == [["0", "1", "2"], ["3", "4", "5"]]
    receipts = await everything(board, "Receipt")
    assert [each.payload["total"] for each in receipts] == [3, 3]
    assert {each.parents for each in receipts} == {
        tuple(order.id for order in orders[:3]),
        tuple(order.id for order in orders[3:6]),
    }
    assert len({each.run for each in receipts}) == 2


async def test_who_comes_first_is_not_overtaken_while_it_begins_to_be_collected() -> None:
    clerk = Clerk()
    async with Loom(store="memory") as app:  # where nothing else can change the order of runs
        board = app.board()
        board.agent("clerk").consumes(Order, batch=Batch(4)).with_engines(clerk)
        for item in ("a", "b", "c", "d"):
            await board.publish(Order(item=item))
        await idle(board)
    assert clerk.given == [["a", "b", "c", "d"]]


async def test_an_incomplete_batch_is_taken_when_the_board_closes(app: Loom, board: Board) -> None:
    clerk = Clerk()
    board.agent("clerk").consumes(Order, batch=Batch(3)).with_engines(clerk)
    for item in ("a", "b"):
        await board.publish(Order(item=item))
        await idle(board)
    assert clerk.given == []
    await board.close(SOON)
    assert clerk.given == [["a", "b"]]
    (closed,) = await facts(app, "batch.closed")
    assert closed.subscription == "clerk#1" and closed.reason


@pytest.mark.parametrize("batch", [Batch(3), Batch(3, MINUTE)])
async def test_what_was_published_right_before_the_board_closes_is_taken(
    board: Board, batch: Batch
) -> None:
    clerk = Clerk(lambda task: Receipt(total=len(task.inputs)))
    board.agent("clerk").consumes(Order, batch=batch).publishes(Receipt).with_engines(clerk)
    await board.publish(Order(item="a"))
    await board.publish(Order(item="b"))
    await board.close(SOON)
    assert [sorted(each) for each in clerk.given] == [["a", "b"]]


async def test_a_board_closes_with_nothing_left_to_take(app: Loom, board: Board) -> None:
    clerk = Clerk()
    board.agent("clerk").consumes(Order, batch=Batch(1)).with_engines(clerk)
    await board.publish(Order())
    await board.close(SOON)
    assert clerk.given == [["tea"]]


@pytest.mark.parametrize("patience", [MINUTE, 60, 60.0])
async def test_a_batch_is_taken_when_its_time_is_over(timed: Timed, patience: Any) -> None:
    board, clerk = timed.board(), Clerk()
    board.agent("clerk").consumes(Order, batch=Batch(3, timeout=patience)).with_engines(clerk)
    for number, item in enumerate(("a", "b"), 1):
        await board.publish(Order(item=item))
        await received(timed, board, number)
        assert clerk.given == []
        timed.clock.advance(MINUTE / 2)
    await idle(board)
    assert clerk.given == [["a", "b"]]
    assert len(await facts(timed, "batch.closed")) == 1


async def test_time_counts_from_the_first_of_each_batch(timed: Timed) -> None:
    board, clerk = timed.board(), Clerk()
    board.agent("clerk").consumes(Order, batch=Batch(2, MINUTE)).with_engines(clerk)
    for number in (1, 2):
        await board.publish(Order(item=str(number)))
        await received(timed, board, number)
    await idle(board)
    timed.clock.advance(10 * MINUTE)
    await board.publish(Order(item="3"))
    await received(timed, board, 3)
    assert clerk.given == [["1", "2"]]
    timed.clock.advance(MINUTE)
    await idle(board)
    assert clerk.given == [["1", "2"], ["3"]]


async def test_idle_is_not_said_while_a_batch_has_a_time(board: Board) -> None:
    clerk = Clerk()
    board.agent("clerk").consumes(Order, batch=Batch(timeout=0.2)).with_engines(clerk)
    await board.publish_many([Order(item="a"), Order(item="b")])
    await idle(board)
    assert sorted(each for batch in clerk.given for each in batch) == ["a", "b"]


async def test_pairs_of_one_correlation_are_batched(board: Board) -> None:
    clerk = Clerk()
    board.agent("clerk").consumes(Order, Payment, batch=Batch(2)).with_engines(clerk)
    await board.publish(Order(item="a"), correlation_id="one")
    await board.publish(Payment(item="2"), correlation_id="two")
    await board.publish(Order(item="b"), correlation_id="two")
    await idle(board)
    assert clerk.given == []
    await board.publish(Payment(item="1"), correlation_id="one")
    await idle(board)
    assert clerk.given == [["b", "2", "a", "1"]]


async def test_joined_sets_are_batched(board: Board) -> None:
    clerk = Clerk()
    board.agent("clerk").consumes(Order, Payment, join=Join("item"), batch=Batch(2)).with_engines(
        clerk
    )
    for each in (Order(item="a"), Order(item="b"), Payment(item="b")):
        await board.publish(each)
        await idle(board)
    assert clerk.given == []
    await board.publish(Payment(item="a"))
    await idle(board)
    assert clerk.given == [["b", "b", "a", "a"]]


async def test_a_batch_of_what_agents_make(app: Loom, board: Board) -> None:
    clerk = Clerk()
    board.agent("packer").consumes(Order).publishes(Parcel).with_engines(Clerk(pack))
    board.agent("clerk").consumes(Parcel, batch=Batch(3)).with_engines(clerk)
    await board.publish_many([Order(item=str(number)) for number in range(3)])
    await idle(board)
    assert [sorted(each) for each in clerk.given] == [["0", "1", "2"]]


async def test_an_incomplete_batch_survives_a_restart(store: str) -> None:
    clerks = [Clerk(), Clerk()]
    for number, clerk in enumerate(clerks):
        async with Loom(store=store) as app:
            board = app.board()
            board.agent("clerk").consumes(Order, batch=Batch(2)).with_engines(clerk)
            await board.publish(Order(item=str(number)))
            await idle(board)
    assert [clerk.given for clerk in clerks] == [[], [["0", "1"]]]


async def test_the_time_of_a_batch_passes_over_a_restart(store: str) -> None:
    clerk = Clerk()
    for number in range(2):
        async with Timed(store) as app:
            app.clock.advance(number * 2 * MINUTE)
            board = app.board()
            board.agent("clerk").consumes(Order, batch=Batch(9, MINUTE)).with_engines(clerk)
            if number:
                assert len(await board.resume()) == 1
                await idle(board)
            else:
                await board.publish(Order(item="tea"))
                await received(app, board, 1)
    assert clerk.given == [["tea"]]
