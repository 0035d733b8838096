"""Questions that tools and hooks ask in turns on a board."""

import asyncio
from typing import Any

import pytest

from tests.reaction.scenes import (
    MINUTE,
    SOON,
    Clerk,
    Gate,
    Order,
    Parcel,
    Payment,
    Receipt,
    everything,
    facts,
    idle,
    statuses,
)
from tests.support.timed import Timed
from turnloom import Board, Loom
from turnloom.agents.spec import Answer, Task, ToolCall, use_ui_tool
from turnloom.errors import QuestionExpired, UsageError


async def confirm(item: str) -> Any:
    """Ask whether an item may go."""
    return await use_ui_tool("confirm", {"item": item})


async def hurry(item: str) -> Any:
    """Ask, but not for long."""
    try:
        return await use_ui_tool("hurry", {"item": item}, timeout=60)
    except QuestionExpired:
        return "nobody there"


def ask(task: Task) -> Any:
    """Calls the agent's tool, and packs what was answered."""
    item = str(task.inputs[0].payload["item"])
    if not task.exchanges:
        return Answer(calls=(ToolCall(task.tools[0].name, {"item": item}),))
    return Parcel(item=item, notes=str(task.exchanges[0].results[0].value))


def declare(board: Board, *names: str) -> None:
    """Agents that ask about every order."""
    for name in names:
        board.agent(name).consumes(Order).publishes(Parcel).with_tools(confirm).with_engines(
            Clerk(ask)
        )


async def asked(app: Loom, board: Board, run: str | None, number: int) -> str:
    """Wait until a run has asked so often; what it asked last."""
    assert run is not None

    async def is_asked() -> bool:
        return len(await facts(app, "question.asked", run)) == number

    await board.run_until(is_asked, SOON)
    return (await facts(app, "question.asked", run))[-1].question


async def test_a_tool_asks_and_its_turn_goes_on_with_the_answer(app: Loom, board: Board) -> None:
    declare(board, "clerk")
    order = await board.publish(Order(item="tea"))
    await idle(board)
    assert await statuses(app) == ["waiting"]
    (question,) = await facts(app, "question.asked", order.run)
    assert (question.tool, question.payload, question.to) == ("confirm", {"item": "tea"}, "local")
    assert order.run is not None
    await app.handle(order.run).answer(question.question, "yes")
    await idle(board)
    (parcel,) = await everything(board, "Parcel")
    assert parcel.payload["notes"] == "yes"
    assert await statuses(app) == ["finished"]


async def test_two_agents_ask_at_once_and_are_answered_in_any_order(
    app: Loom, board: Board
) -> None:
    declare(board, "one", "two")
    order = await board.publish(Order())
    await idle(board)
    assert order.run is not None and await statuses(app) == ["waiting"]
    run = app.handle(order.run)
    first, second = await run.questions()
    await run.answer(second.id, "to the second")
    await idle(board)
    (parcel,) = await everything(board, "Parcel")
    assert parcel.payload["notes"] == "to the second"
    assert await run.questions() == [first] and await statuses(app) == ["waiting"]
    await run.answer(first.id, "to the first")
    await idle(board)
    parcels = await everything(board, "Parcel")
    assert {each.payload["notes"] for each in parcels} == {"to the first", "to the second"}
    assert {each.produced_by for each in parcels} == {"one", "two"}
    assert await statuses(app) == ["finished"]


async def test_others_go_on_while_somebody_is_asked(app: Loom, board: Board) -> None:
    declare(board, "clerk")
    board.agent("other").consumes(Order).publishes(Receipt).with_engines(
        Clerk(lambda task: Receipt())
    )
    board.agent("after").consumes(Receipt).publishes(Payment).with_engines(
        Clerk(lambda task: Payment())
    )
    order = await board.publish(Order())
    await idle(board)
    assert [each.type for each in await everything(board)] == [
        *("shop.Order", "shop.Receipt", "shop.Payment")
    ]
    assert await statuses(app) == ["waiting"]
    question = await asked(app, board, order.run, 1)
    assert order.run is not None
    await app.handle(order.run).answer(question, "yes")
    await idle(board)
    assert await statuses(app) == ["finished"]


async def test_a_turn_goes_on_with_its_answer_though_another_takes_long(
    app: Loom, board: Board
) -> None:
    gate = Gate()
    declare(board, "clerk")
    board.agent("slow").consumes(Order).publishes(Parcel).with_engines(gate)
    order = await board.publish(Order())
    question = await asked(app, board, order.run, 1)
    await gate.holds(1)
    assert order.run is not None
    await app.handle(order.run).answer(question, "yes")

    async def is_packed() -> bool:
        return bool(await everything(board, "Parcel"))

    await board.run_until(is_packed, SOON)
    assert gate.waiting == 1
    gate.open()
    await idle(board)
    assert gate.passed == 1, "nobody was interrupted"
    assert len(await everything(board, "Parcel")) == 2
    assert await statuses(app) == ["finished"]
    assert await facts(app, "run.resumed", order.run) == []


async def test_what_is_published_meanwhile_is_taken_meanwhile(app: Loom, board: Board) -> None:
    declare(board, "clerk")
    other = Clerk()
    board.agent("other").consumes(Payment).with_engines(other)
    order = await board.publish(Order(), correlation_id="one")
    question = await asked(app, board, order.run, 1)
    await idle(board)
    await board.publish(Payment(item="coin"), correlation_id="one")
    await idle(board)
    assert other.given == [["coin"]]
    assert await statuses(app) == ["waiting"]
    run = app.handle(order.run or "")
    await run.answer(question, "yes")
    await idle(board)
    assert await statuses(app) == ["finished"]


async def test_runs_ask_independently(app: Loom, board: Board) -> None:
    declare(board, "clerk")
    orders = await board.publish_many([Order(item="a"), Order(item="b")])
    await idle(board)
    for order in reversed(orders):
        question = await asked(app, board, order.run, 1)
        await app.handle(order.run or "").answer(question, order.payload["item"])
    await idle(board)
    parcels = await everything(board, "Parcel")
    assert {each.payload["item"]: each.payload["notes"] for each in parcels} == {"a": "a", "b": "b"}


async def test_a_question_that_nobody_answers_expires(timed: Timed) -> None:
    board = timed.board()
    board.agent("clerk").consumes(Order).publishes(Parcel).with_tools(hurry).with_engines(
        Clerk(ask)
    )
    order = await board.publish(Order())
    question = await asked(timed, board, order.run, 1)
    await idle(board)
    timed.clock.advance(MINUTE)

    async def is_packed() -> bool:
        return bool(await everything(board, "Parcel"))

    await board.run_until(is_packed, SOON)
    await idle(board)
    (parcel,) = await everything(board, "Parcel")
    assert parcel.payload["notes"] == "nobody there"
    with pytest.raises((QuestionExpired, UsageError)):
        await timed.handle(order.run or "").answer(question, "yes")


async def test_a_question_expires_while_another_turn_is_taken(timed: Timed) -> None:
    board, gate = timed.board(), Gate()
    board.agent("clerk").consumes(Order).publishes(Parcel).with_tools(hurry).with_engines(
        Clerk(ask)
    )
    board.agent("slow").consumes(Order).publishes(Parcel).with_engines(gate)
    order = await board.publish(Order())
    await asked(timed, board, order.run, 1)
    await gate.holds(1)
    timed.clock.advance(MINUTE)
    gate.open()
    await idle(board)
    notes = {each.payload["notes"] for each in await everything(board, "Parcel")}
    assert notes == {"nobody there", ""}


async def test_a_direct_call_may_ask(app: Loom, board: Board) -> None:
    declare(board, "clerk")
    made: list[Any] = []

    async def call() -> None:
        made.extend(await board.invoke("clerk", Order(item="tea")))

    calling = asyncio.create_task(call())

    async def is_asked() -> bool:
        return bool(await facts(app, "question.asked"))

    await board.run_until(is_asked, SOON)
    (question,) = await facts(app, "question.asked")
    (summary,) = await app.runs()
    await app.handle(summary.run).answer(question.question, "yes")
    await calling
    assert [each.payload["notes"] for each in made] == ["yes"]
    await idle(board)


async def test_a_hook_asks_before_a_run_and_its_answer_is_a_value(app: Loom) -> None:
    async def welcome(context_variables: Any) -> None:
        context_variables["mood"] = await use_ui_tool("welcome", {"title": "How are you?"})

    variables = {
        "definitions": {
            "mood": {"type": "string", "source": {"type": "derived", "default": "", "triggers": []}}
        },
        "agents": {"clerk": {"variables": ["mood"]}},
    }
    hooks = [{"trigger": "before_chat", "function": welcome}]
    board, clerk = app.board(variables=variables, hooks=hooks), Clerk()
    board.agent("clerk").consumes(Order).with_engines(clerk)
    order = await board.publish(Order())
    question = await asked(app, board, order.run, 1)
    await idle(board)
    assert clerk.tasks == []
    await app.handle(order.run or "").answer(question, "fine")
    await idle(board)
    assert '- mood: "fine"' in clerk.tasks[0].system


async def test_a_question_outlives_the_process(store: str) -> None:
    order = None
    for _ in range(2):
        async with Loom(store=store) as app:
            board = app.board()
            declare(board, "one", "two")
            if order is None:
                order = await board.publish(Order())
                await asked(app, board, order.run, 2)
                await idle(board)
                continue
            assert await board.resume() == [order.run]
            run = app.handle(order.run or "")
            for number, question in enumerate(reversed(await run.questions())):
                await run.answer(question.id, str(number))
            await idle(board)
            notes = {each.payload["notes"] for each in await everything(board, "Parcel")}
            assert notes == {"0", "1"}
