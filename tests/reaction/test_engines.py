"""What makes agents on a board answer: engines in a row, several tries, tools, room."""

import asyncio
from typing import Any

import pytest

from tests.reaction.scenes import (
    SOON,
    Clerk,
    Gate,
    Order,
    Parcel,
    Receipt,
    everything,
    facts,
    fail,
    failures,
    idle,
    pack,
)
from turnloom import Board, Loom
from turnloom.agents.spec import Answer, Publication, Task, ToolCall


async def test_engines_answer_one_after_the_other(board: Board) -> None:
    def draft(task: Task) -> Parcel:
        return Parcel(item="draft")

    def improve(task: Task) -> Parcel:
        return Parcel(item="final", notes=task.exchanges[-1].text)

    second = Clerk(improve)
    board.agent("clerk").consumes(Order).publishes(Parcel).with_engines(Clerk(draft), second)
    await board.publish(Order())
    await idle(board)
    (parcel,) = await everything(board, "Parcel")
    assert parcel.payload["item"] == "final"
    assert parcel.payload["notes"] == '{"item":"draft","notes":""}'
    assert len(second.tasks[0].exchanges) == 1


async def test_what_an_engine_made_counts_if_a_later_one_makes_nothing(
    app: Loom, board: Board
) -> None:
    board.agent("clerk").consumes(Order).publishes(Parcel).with_engines(
        Clerk(pack), Clerk(lambda task: None)
    )
    await board.publish(Order(item="tea"))
    await idle(board)
    assert [each.payload["item"] for each in await everything(board, "Parcel")] == ["tea"]


async def test_an_engine_that_is_not_the_last_may_just_talk(app: Loom, board: Board) -> None:
    def wrap(task: Task) -> Parcel:
        return Parcel(notes=task.exchanges[-1].text)

    agent = board.agent("clerk").consumes(Order).publishes(Parcel, fan_out=1)
    agent.with_engines(Clerk(lambda task: "Take the small box."), Clerk(wrap))
    await board.publish(Order())
    await idle(board)
    (parcel,) = await everything(board, "Parcel")
    assert parcel.payload["notes"] == "Take the small box."
    assert [each.text for each in await facts(app, "agent.text")] == ["Take the small box."]


async def test_an_engine_that_fails_ends_the_row(board: Board) -> None:
    last = Clerk(pack)
    board.agent("clerk").consumes(Order).publishes(Parcel).with_engines(Clerk(fail), last)
    await board.publish(Order())
    assert "RuntimeError: out of stock" in (await failures(board))[0]
    assert last.tasks == []


async def test_a_plain_function_answers_off_the_loop(board: Board) -> None:
    def engine(task: Task) -> Parcel:
        with pytest.raises(RuntimeError, match="no running event loop"):
            asyncio.get_running_loop()
        return Parcel(item="box")

    board.agent("clerk").consumes(Order).publishes(Parcel).with_engines(engine)
    await board.publish(Order())
    await idle(board)
    assert len(await everything(board, "Parcel")) == 1


async def test_the_engine_of_the_app_answers_for_those_without(store: str) -> None:
    clerk = Clerk(pack)
    async with Loom(store=store, engine=clerk) as app:
        board = app.board()
        board.agent("clerk").consumes(Order).publishes(Parcel)
        await board.publish(Order(item="tea"))
        await idle(board)
        assert clerk.given == [["tea"]]


async def test_a_description_is_what_the_agent_is_told(board: Board) -> None:
    clerk = Clerk()
    board.agent("clerk").description("You pack parcels.").consumes(Order).with_engines(clerk)
    await board.publish(Order(item="tea"))
    await idle(board)
    assert clerk.tasks[0].system.startswith("You pack parcels.")
    assert '"item":"tea"' in clerk.tasks[0].transcript[-1].text


async def test_the_best_of_several_tries_counts(app: Loom, board: Board) -> None:
    clerk = Clerk(lambda task: Receipt(total=len(clerk.tasks)))

    def score(answer: Answer) -> int:
        return {1: 5, 2: 9, 3: 7}[answer.artifacts[0].value.total]

    board.agent("clerk").consumes(Order).publishes(Receipt).with_engines(clerk).best_of(3, score)
    await board.publish(Order())
    await idle(board)
    assert [each.payload["total"] for each in await everything(board, "Receipt")] == [2]
    (chosen,) = await facts(app, "sample.chosen")
    assert sorted(chosen.scores) == [5.0, 7.0, 9.0]
    assert chosen.scores[chosen.chosen] == 9.0


async def test_a_score_may_be_async_and_sees_the_whole_answer(board: Board) -> None:
    made = Answer("Well.", artifacts=(Publication(Receipt(total=1), {"rush"}),))
    seen: list[Answer] = []

    async def score(answer: Answer) -> float:
        seen.append(answer)
        return 1.0

    board.agent("clerk").consumes(Order).publishes(Receipt).with_engines(
        Clerk(lambda task: made)
    ).best_of(2, score)
    await board.publish(Order())
    await idle(board)
    assert [each.text for each in seen] == ["Well."] * 2
    assert seen[0].artifacts[0].value == Receipt(total=1)
    assert seen[0].artifacts[0].tags == {"rush"}
    assert len(await everything(board, "Receipt")) == 1


async def test_a_try_that_fails_is_out_and_on_record(app: Loom, board: Board) -> None:
    def make(task: Task) -> Receipt:
        number = len(clerk.tasks)
        return fail(task) if number == 2 else Receipt(total=number)

    clerk = Clerk(make)
    board.agent("clerk").consumes(Order).publishes(Receipt).with_engines(clerk).best_of(
        3, lambda answer: answer.artifacts[0].value.total
    )
    await board.publish(Order())
    await idle(board)
    assert [each.payload["total"] for each in await everything(board, "Receipt")] == [3]
    (chosen,) = await facts(app, "sample.chosen")
    assert sorted(chosen.scores, key=str) == [1.0, 3.0, None]
    (failed,) = await facts(app, "model.failed")
    assert failed.message == "out of stock"


async def test_tries_that_all_fail_fail_the_turn(app: Loom, board: Board) -> None:
    board.agent("clerk").consumes(Order).publishes(Receipt).with_engines(Clerk(fail)).best_of(
        2, lambda answer: 1
    )
    await board.publish(Order())
    assert "RuntimeError: out of stock" in (await failures(board))[0]
    assert await facts(app, "sample.chosen") == []


@pytest.mark.parametrize("score", [float("nan"), "good", None])
async def test_a_score_that_is_none_fails_the_turn(board: Board, score: Any) -> None:
    board.agent("clerk").consumes(Order).publishes(Parcel).with_engines(Clerk(pack)).best_of(
        2, lambda answer: score
    )
    await board.publish(Order())
    assert len(await failures(board)) == 1
    assert await everything(board, "Parcel") == []


async def test_all_tries_see_the_same_context(app: Loom, board: Board) -> None:
    clerk = Clerk(pack)
    board.agent("clerk").consumes(Order).publishes(Parcel).with_engines(clerk).best_of(
        3, lambda answer: 1
    )
    await board.publish(Order(item="before"), correlation_id="one")
    await idle(board)
    await board.publish(Order(item="now"), correlation_id="one")
    await idle(board)
    assert len(await facts(app, "context.gathered")) == 2
    assert len({task.prompt for task in clerk.tasks[3:]}) == 1


async def test_no_more_turns_are_taken_at_once_than_there_is_room_for(board: Board) -> None:
    gate = Gate()
    board.agent("clerk").consumes(Order).publishes(Parcel).with_engines(gate).max_concurrency(2)
    await board.publish_many([Order(item=str(number)) for number in range(4)])
    for number in range(4):
        await board.publish(Order(item=str(number)), correlation_id="one")
    await gate.holds(2)
    gate.open()
    await idle(board)
    assert (gate.most, gate.passed) == (2, 8)


async def test_without_a_limit_turns_are_taken_side_by_side(board: Board) -> None:
    gate = Gate()
    board.agent("clerk").consumes(Order).publishes(Parcel).with_engines(gate)
    await board.publish_many([Order() for _ in range(3)])
    for _ in range(3):
        await board.publish(Order(), correlation_id="one")
    await gate.holds(6)
    gate.open()
    await idle(board)
    assert gate.passed == 6


async def test_an_agent_without_room_does_not_hold_up_others(board: Board) -> None:
    gate, other = Gate(), Clerk()
    board.agent("slow").consumes(Order).publishes(Parcel).with_engines(gate).max_concurrency(1)
    board.agent("quick").consumes(Order).with_engines(other)
    await board.publish(Order(item="a"), correlation_id="one")
    await board.publish(Order(item="b"), correlation_id="one")
    await board.run_until(lambda: len(other.tasks) == 2, SOON)
    await gate.holds(1)
    gate.open()
    await idle(board)
    assert gate.passed == 2


async def test_an_agent_calls_its_tools(app: Loom, board: Board) -> None:
    def weigh(item: str) -> int:
        """The weight of a thing."""
        return len(item)

    async def price(item: str) -> int:
        return 10 * len(item)

    def make(task: Task) -> Any:
        if not task.exchanges:
            return Answer(
                calls=(ToolCall("weigh", {"item": "tea"}), ToolCall("price", {"item": "tea"}))
            )
        return Receipt(total=sum(each.value for each in task.exchanges[0].results))

    clerk = Clerk(make)
    board.agent("clerk").consumes(Order).publishes(Receipt).with_tools(weigh, price).with_engines(
        clerk
    )
    board.agent("other").consumes(Parcel).with_engines(Clerk())
    await board.publish(Order())
    await idle(board)
    assert [each.payload["total"] for each in await everything(board, "Receipt")] == [33]
    assert [(tool.name, tool.description) for tool in clerk.tasks[0].tools] == [
        ("weigh", "The weight of a thing."),
        ("price", ""),
    ]
    results = {each.tool: each.result for each in await facts(app, "tool.returned")}
    assert results == {"weigh": 3, "price": 30}
