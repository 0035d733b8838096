"""What becomes visible later: whoever waits for it is woken then."""

from datetime import timedelta

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
    statuses,
)
from tests.support.timed import Timed
from turnloom.board.spec import After, Labelled, Private, Reader
from turnloom.reaction.spec import Batch, Join


def later(app: Timed, by: timedelta = MINUTE) -> After:
    return After(app.clock.time + by)


async def test_a_subscriber_is_woken_when_it_can_see(timed: Timed) -> None:
    board, clerk = timed.board(), Clerk(pack)
    board.agent("clerk").consumes(Order).publishes(Parcel).with_engines(clerk)
    order = await board.publish(Order(), visibility=later(timed))
    await idle(board)
    assert clerk.given == []
    assert await statuses(timed) == ["waiting"]
    (offered,) = await facts(timed, "artifact.offered")
    assert offered.to[0].verdict == "later"
    assert offered.to[0].opens == timed.clock.time + MINUTE
    timed.clock.advance(MINUTE)
    await board.run_until(lambda: clerk.tasks, SOON)
    await idle(board)
    assert clerk.given == [["tea"]]
    (opened,) = await facts(timed, "artifact.opened")
    assert (opened.artifact, opened.subscription) == (order.id, "clerk#1")
    assert await statuses(timed) == ["finished"]


async def test_each_is_woken_at_its_own_instant(timed: Timed) -> None:
    board, boss, guest = timed.board(), Clerk(), Clerk()
    board.agent("boss").labels("boss").consumes(Order).with_engines(boss)
    board.agent("guest").consumes(Order).with_engines(guest)
    await board.publish(Order(item="a"), visibility=After(later(timed).at, Labelled({"boss"})))
    await board.publish(Order(item="b"), visibility=later(timed, 2 * MINUTE))
    await idle(board)
    timed.clock.advance(MINUTE)
    await board.run_until(lambda: boss.tasks, SOON)
    assert (boss.given, guest.given) == ([["a"]], [])
    timed.clock.advance(MINUTE)
    await board.run_until(lambda: guest.tasks and len(boss.tasks) == 2, SOON)
    await idle(board)
    assert (boss.given, guest.given) == ([["a"], ["b"]], [["b"]])


async def test_nested_instants_all_have_to_pass(timed: Timed) -> None:
    board, clerk = timed.board(), Clerk()
    board.agent("clerk").consumes(Order).with_engines(clerk)
    nested = After(later(timed).at, After(later(timed, 3 * MINUTE).at, Private({"clerk"})))
    await board.publish(Order(), visibility=nested)
    await idle(board)
    (offered,) = await facts(timed, "artifact.offered")
    assert offered.to[0].opens == timed.clock.time + 3 * MINUTE
    timed.clock.advance(3 * MINUTE)
    await board.run_until(lambda: clerk.tasks, SOON)
    await idle(board)


async def test_an_instant_that_has_passed_hides_nothing(timed: Timed) -> None:
    board, clerk = timed.board(), Clerk()
    board.agent("clerk").consumes(Order).with_engines(clerk)
    await board.publish(Order(), visibility=later(timed, -MINUTE))
    await idle(board)
    assert clerk.given == [["tea"]]


async def test_what_opens_joins_and_completes_as_anything_else(timed: Timed) -> None:
    board, pair, joined, batch = timed.board(), Clerk(), Clerk(), Clerk()
    board.agent("pair").consumes(Order, Payment).with_engines(pair)
    board.agent("joined").consumes(Order, Payment, join=Join("item")).with_engines(joined)
    board.agent("batch").consumes(Order, batch=Batch(1)).with_engines(batch)
    await board.publish(Order(), correlation_id="one", visibility=later(timed))
    await board.publish(Payment(), correlation_id="one")
    await idle(board)
    assert pair.tasks == joined.tasks == batch.tasks == []
    timed.clock.advance(MINUTE)
    await board.run_until(lambda: pair.tasks and joined.tasks and batch.tasks, SOON)
    await idle(board)
    assert pair.given == joined.given == [["tea", "tea"]]
    assert batch.given == [["tea"]]


async def test_a_condition_is_asked_when_it_can_be_seen(timed: Timed) -> None:
    asked: list[int] = []

    def note(order: Order) -> bool:
        asked.append(order.number)
        return False

    board = timed.board()
    board.agent("clerk").consumes(Order, where=note).with_engines(Clerk())
    await board.publish(Order(number=1), visibility=later(timed))
    await idle(board)
    assert asked == []
    timed.clock.advance(MINUTE)
    await board.run_until(lambda: asked, SOON)
    await idle(board)
    assert asked == [1]
    assert await statuses(timed) == ["finished"]


async def test_an_agent_makes_something_that_opens_later(timed: Timed) -> None:
    board, courier = timed.board(), Clerk()
    board.agent("clerk").consumes(Order).publishes(Parcel, visibility=later(timed)).with_engines(
        Clerk(pack)
    )
    board.agent("courier").consumes(Parcel).with_engines(courier)
    await board.publish(Order())
    await idle(board)
    assert courier.tasks == []
    timed.clock.advance(MINUTE)
    await board.run_until(lambda: courier.tasks, SOON)
    await idle(board)


async def test_an_instant_is_kept_over_a_restart(store: str) -> None:
    clerk = Clerk()
    for number in range(2):
        async with Timed(store) as app:
            board = app.board()
            board.agent("clerk").consumes(Order).with_engines(clerk)
            if not number:
                await board.publish(Order(), visibility=later(app))
                await idle(board)
                continue
            assert len(await board.resume()) == 1
            await idle(board)
            assert clerk.tasks == []
            app.clock.advance(MINUTE)
            await board.run_until(lambda: clerk.tasks, SOON)
            await idle(board)
            assert len(await everything(board, reader=Reader("clerk"))) == 1
