"""Waiting for a board, calling agents directly, trying again, ending runs."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.reaction.scenes import (
    SOON,
    Clerk,
    Gate,
    Once,
    Order,
    Parcel,
    Payment,
    Receipt,
    everything,
    facts,
    fail,
    failures,
    idle,
    pack,
    statuses,
)
from turnloom import Board, Loom
from turnloom.errors import LoopLimit, ReactionFailed, UsageError
from turnloom.reaction.spec import Batch, Join


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return "memory" if request.param == "memory" else str(tmp_path / "turnloom.db")


@pytest.fixture
def broken(board: Board) -> Clerk:
    """An agent that fails once, beside one that does not."""
    clerk = Clerk(Once())
    board.agent("broken").consumes(Order).publishes(Parcel).with_engines(clerk)
    board.agent("sound").consumes(Order).publishes(Receipt).with_engines(
        Clerk(lambda task: Receipt())
    )
    return clerk


async def test_idle_raises_what_failed_and_others_go_on(
    app: Loom, board: Board, broken: Clerk
) -> None:
    order = await board.publish(Order())
    with pytest.raises(ExceptionGroup) as caught:
        await board.run_until_idle(SOON)
    (failure,) = caught.value.exceptions
    assert isinstance(failure, ReactionFailed)
    assert (failure.run, failure.agent) == (order.run, "broken")
    assert "RuntimeError: out of stock" in str(failure)
    assert [each.type for each in await everything(board)] == ["shop.Order", "shop.Receipt"]
    ended = {each.agent: each.status for each in await facts(app, "turn.finished")}
    assert ended == {"broken": "failed", "sound": "done"}
    assert await board.run_until_idle(SOON) is None, "it was told once"


async def test_idle_gives_what_failed_if_it_is_not_to_raise(board: Board, broken: Clerk) -> None:
    await board.publish(Order())
    group = await board.run_until_idle(SOON, raise_errors=False)
    assert group is not None and len(group.exceptions) == 1
    assert await board.run_until_idle(SOON, raise_errors=False) is None


async def test_an_idle_board_is_idle_at_once(board: Board) -> None:
    assert await board.run_until_idle(SOON) is None


async def test_waiting_ends_in_time_and_what_goes_on_goes_on(board: Board) -> None:
    gate = Gate()
    board.agent("clerk").consumes(Order).publishes(Parcel).with_engines(gate)
    await board.publish(Order())
    with pytest.raises(TimeoutError):
        await board.run_until_idle(0.05)
    gate.open()
    await idle(board)
    assert len(await everything(board, "Parcel")) == 1


async def test_a_condition_is_waited_for_while_others_work(board: Board) -> None:
    gate = Gate()
    board.agent("slow").consumes(Order).publishes(Parcel).with_engines(gate)
    board.agent("quick").consumes(Order).publishes(Receipt).with_engines(
        Clerk(lambda task: Receipt())
    )
    await board.publish(Order())

    async def is_there() -> bool:
        return bool(await everything(board, "Receipt"))

    await board.run_until(is_there, SOON)
    assert gate.passed == 0
    with pytest.raises(TimeoutError):
        await board.run_until(lambda: gate.passed, 0.05)
    gate.open()
    await board.run_until(lambda: gate.passed, SOON)
    await idle(board)


async def test_a_condition_that_fails_says_so(board: Board) -> None:
    def broken() -> bool:
        raise LookupError("no")

    with pytest.raises(LookupError):
        await board.run_until(broken, SOON)


async def test_a_direct_call_runs_once_and_publishes(app: Loom, board: Board) -> None:
    clerk, other = Clerk(pack), Clerk()
    board.agent("clerk").consumes(Order).publishes(Parcel).with_engines(clerk)
    board.agent("other").consumes(Parcel).with_engines(other)
    (made,) = await board.invoke("clerk", Order(item="tea"))
    await idle(board)
    assert clerk.given == other.given == [["tea"]]
    (parcel,) = await everything(board)
    assert parcel == made
    assert made.parents == (clerk.tasks[0].inputs[0].id,)
    assert made.run == clerk.tasks[0].run
    assert await statuses(app) == ["finished"]


async def test_a_direct_call_need_not_publish(app: Loom, board: Board) -> None:
    clerk, other = Clerk(lambda task: [pack(task), Receipt(total=3)]), Clerk()
    board.agent("clerk").publishes(Parcel, Receipt).with_engines(clerk)
    board.agent("other").consumes(Parcel).with_engines(other)
    made = await board.invoke("clerk", Order(item="tea"), publish=False)
    await idle(board)
    assert [each.type for each in made] == ["shop.Parcel", "shop.Receipt"]
    assert made[0].run == clerk.tasks[0].run and made[0].run
    assert await everything(board) == []
    assert other.tasks == []
    assert len(clerk.tasks) == 1
    assert [each.artifact for each in await facts(app, "artifact.made")] == made


async def test_a_direct_call_has_a_context(board: Board) -> None:
    clerk = Clerk()
    board.agent("clerk").with_context_filter(limit=2).with_engines(clerk)
    for item in ("a", "b", "c"):
        await board.publish(Order(item=item))
    await idle(board)
    assert await board.invoke("clerk", Payment(item="now")) == []
    assert (clerk.given, clerk.seen) == ([["now"]], [["b", "c"]])
    assert clerk.tasks[0].context.items[0]["artifact_id"]


async def test_a_direct_call_says_what_failed(board: Board) -> None:
    board.agent("clerk").with_engines(Clerk(fail))
    with pytest.raises(ReactionFailed, match="out of stock") as caught:
        await board.invoke("clerk", Order())
    assert caught.value.agent == "clerk"
    await idle(board)  # whoever called was told, and nobody else is
    with pytest.raises(UsageError, match="'clrek'.*clerk"):
        await board.invoke("clrek", Order())


async def test_a_direct_call_that_failed_can_be_tried_again(app: Loom, board: Board) -> None:
    board.agent("clerk").publishes(Parcel).with_engines(Clerk(Once()))
    with pytest.raises(ReactionFailed) as caught:
        await board.invoke("clerk", Order(item="tea"))
    await failures(board)
    assert await board.retry(caught.value) == 1
    await idle(board)
    assert [each.payload["item"] for each in await everything(board)] == ["tea"]


async def test_what_failed_is_not_tried_again_by_itself(
    app: Loom, board: Board, broken: Clerk
) -> None:
    order = await board.publish(Order(), id="order-1")
    await failures(board)
    await board.publish(Order(), id="order-1")
    await idle(board)
    assert len(broken.tasks) == 1
    assert await statuses(app) == ["waiting"]
    assert order.run


@pytest.mark.parametrize("by", ["failure", "run", "artifact", "id", "agent"])
async def test_what_failed_is_tried_again_on_purpose(
    app: Loom, board: Board, broken: Clerk, by: str
) -> None:
    order = await board.publish(Order())
    group = await board.run_until_idle(SOON, raise_errors=False)
    assert group is not None
    whole: dict[str, Any] = {"failure": group.exceptions[0], "artifact": order, "id": order.id}
    asked = whole.get(by, order.run)
    assert await (board.retry(asked, "broken") if by == "agent" else board.retry(asked)) == 1
    await idle(board)
    assert len(broken.tasks) == 2
    (parcel,) = await everything(board, "Parcel")
    assert parcel.parents == (order.id,)
    taken = [each for each in await facts(app, "artifact.consumed") if each.agent == "broken"]
    assert [each.retry_of for each in taken] == [0, taken[0].turn]
    assert [(each.turn, each.by) for each in await facts(app, "retry.asked")] == [
        (taken[0].turn, "local")
    ]
    assert await statuses(app) == ["finished"]
    with pytest.raises(UsageError):
        await board.retry(asked)


async def test_only_what_failed_can_be_tried_again(board: Board, broken: Clerk) -> None:
    order = await board.publish(Order())
    await failures(board)
    with pytest.raises(UsageError):
        await board.retry(order, "sound")
    with pytest.raises(UsageError, match="'nobody'"):
        await board.retry("nobody")


async def test_all_that_failed_in_a_run_is_tried_again(board: Board) -> None:
    one, two = Clerk(Once()), Clerk(Once())
    board.agent("one").consumes(Order).publishes(Parcel).with_engines(one)
    board.agent("two").consumes(Order).publishes(Parcel).with_engines(two)
    order = await board.publish(Order())
    assert len(await failures(board)) == 2
    assert order.run is not None
    assert await board.retry(order.run) == 2
    await idle(board)
    assert len(await everything(board, "Parcel")) == 2


async def test_what_fails_again_can_be_tried_again(board: Board) -> None:
    clerk = Clerk(fail)
    board.agent("clerk").consumes(Order).with_engines(clerk)
    order = await board.publish(Order())
    for number in (1, 2, 3):
        assert len(await failures(board)) == 1
        assert len(clerk.tasks) == number
        assert await board.retry(order) == 1
    await failures(board)


@pytest.mark.parametrize("is_joined", [True, False])
async def test_a_set_that_failed_is_tried_again_by_what_was_in_it(
    board: Board, is_joined: bool
) -> None:
    clerk = Clerk(Once())
    agent = board.agent("clerk").publishes(Parcel).with_engines(clerk)
    if is_joined:
        agent.consumes(Order, Payment, join=Join("item"))
    else:
        agent.consumes(Order, batch=Batch(2))
    await board.publish(Order())
    last = await board.publish(Payment() if is_joined else Order())
    assert len(await failures(board)) == 1
    assert await board.retry(last) == 1
    await idle(board)
    assert len(clerk.tasks) == 2
    assert len(await everything(board, "Parcel")) == 1


async def test_a_retry_outlives_the_process(tmp_path: Path) -> None:
    store = str(tmp_path / "turnloom.db")
    once, order = Once(), None
    for number in range(2):
        async with Loom(store=store) as app:
            board = app.board()
            board.agent("clerk").consumes(Order).publishes(Parcel).with_engines(Clerk(once))
            if order is None:
                order = await board.publish(Order())
                assert len(await failures(board)) == 1
            else:
                assert await board.retry(order) == 1
                await idle(board)
                assert len(await everything(board, "Parcel")) == number


async def test_a_run_is_cancelled(app: Loom, board: Board) -> None:
    gate = Gate()
    board.agent("clerk").consumes(Order).publishes(Parcel).with_engines(gate)
    one, two = await board.publish(Order(item="a")), await board.publish(Order(item="b"))
    await gate.holds(2)
    assert one.run is not None
    assert await board.cancel(one.run, reason="sold out") == 1
    await gate.holds(1)
    gate.open()
    await idle(board)
    assert (await app.history.events(one.run))[-1].data.reason == "sold out"
    assert await statuses(app) == ["cancelled", "finished"]
    assert [each.payload["item"] for each in await everything(board, "Parcel")] == ["b"]
    assert await board.cancel(one.run) == 0
    assert two.run


async def test_everything_that_goes_on_is_cancelled(app: Loom, board: Board) -> None:
    gate = Gate()
    board.agent("clerk").consumes(Order).publishes(Parcel).with_engines(gate)
    await board.publish_many([Order(), Order(), Order()])
    await gate.holds(3)
    assert await board.cancel() == 3
    await idle(board)
    assert (gate.waiting, gate.passed) == (0, 0)
    assert await statuses(app) == ["cancelled"] * 3
    assert await board.cancel() == 0


async def test_closing_waits_as_long_as_it_may(board: Board) -> None:
    gate = Gate()
    board.agent("clerk").consumes(Order).publishes(Parcel).with_engines(gate)
    await board.publish(Order())
    with pytest.raises(TimeoutError):
        await board.close(timeout=0.05)
    with pytest.raises(UsageError):
        await board.publish(Order())
    gate.open()
    await board.close()
    assert gate.passed == 1


async def test_a_correlation_goes_on_after_its_run_was_cancelled(app: Loom, board: Board) -> None:
    clerk = Clerk()
    board.agent("clerk").consumes(Order, Payment).with_engines(clerk)
    order = await board.publish(Order(item="lost"), correlation_id="one")
    await idle(board)
    await board.cancel(order.run)
    await board.publish(Payment(item="coin"), correlation_id="one")
    await board.publish(Order(item="tea"), correlation_id="one")
    await idle(board)
    assert clerk.given == [["tea", "coin"]]
    assert await statuses(app) == ["cancelled", "finished"]


async def test_a_loop_ends_at_the_limit_with_what_was_not_delivered(app: Loom) -> None:
    board = app.board(max_turns=5)

    def again(task: Any) -> list[Order]:
        return [Order(number=task.inputs[0].payload["number"] + 1), Order(number=100)]

    clerk = Clerk(again)
    agent = board.agent("clerk").consumes(Order, where=lambda order: order.number < 100)
    agent.publishes(Order).with_engines(clerk).prevent_self_trigger(False)
    order = await board.publish(Order())
    group = await board.run_until_idle(SOON, raise_errors=False)
    assert group is not None
    (limit,) = group.exceptions
    assert isinstance(limit, LoopLimit)
    assert [task.inputs[0].payload["number"] for task in clerk.tasks] == [0, 1, 2, 3, 4]
    (reached,) = await facts(app, "limit.reached")
    left = next(each for each in await everything(board) if each.payload["number"] == 5)
    assert (reached.limit, reached.root, reached.undelivered) == (5, order.id, (left.id,))
    assert left.id in str(limit)
    assert await statuses(app) == ["failed"]


async def test_many_legitimate_inputs_are_no_loop(app: Loom) -> None:
    board, clerk = app.board(max_turns=3), Clerk()
    board.agent("clerk").consumes(Order).with_engines(clerk)
    await board.publish_many([Order() for _ in range(20)])
    for _ in range(20):
        await board.publish(Order(), correlation_id="one")
    await idle(board)
    assert len(clerk.tasks) == 40


@pytest.mark.parametrize("is_joined", [True, False])
async def test_a_loop_through_collected_sets_ends_as_well(app: Loom, is_joined: bool) -> None:
    board, clerk = app.board(max_turns=5), Clerk(lambda task: Order())
    agent = board.agent("clerk").publishes(Order).with_engines(clerk).prevent_self_trigger(False)
    if is_joined:
        agent.consumes(Order, Payment, join=Join("item"))
        board.agent("cashier").consumes(Order).publishes(Payment).with_engines(
            Clerk(lambda task: Payment())
        )
    else:
        agent.consumes(Order, batch=Batch(1))
    order = await board.publish(Order())
    group = await board.run_until_idle(SOON, raise_errors=False)
    assert group is not None
    assert [type(each) for each in group.exceptions] == [LoopLimit]
    assert len(clerk.tasks) <= 5
    (reached,) = await facts(app, "limit.reached")
    assert reached.root == order.id


@pytest.mark.parametrize("by", ["zzz", "item.name"])
async def test_a_join_by_what_the_artifacts_do_not_have_is_refused(board: Board, by: str) -> None:
    board.agent("clerk").consumes(Order, Payment, join=Join(by)).with_engines(Clerk())
    with pytest.raises(UsageError, match=by):
        await board.publish(Order())


async def test_what_an_agent_does_not_consume_is_not_given_to_it(board: Board) -> None:
    board.agent("clerk").consumes(Order).with_engines(clerk := Clerk())
    with pytest.raises(UsageError, match="Payment"):
        await board.invoke("clerk", Payment())
    assert not clerk.tasks


async def test_an_engine_is_interrupted_when_the_app_closes(store: str) -> None:
    gate = Gate()
    async with Loom(store=store) as app:
        board = app.board()
        board.agent("clerk").consumes(Order).publishes(Parcel).with_engines(gate)
        await board.publish(Order())
        await gate.holds(1)
    assert gate.waiting == 0
    await asyncio.sleep(0)
