"""Boards whose logs are golden: how agents answer, and what stops them."""

import asyncio
from pathlib import Path
from typing import Any

from tests.golden.scenes import scene
from tests.golden.shop import (
    Order,
    Parcel,
    Payment,
    Receipt,
    calling,
    charge,
    fail,
    failing_once,
    idle,
    kinds,
    look,
    pack,
    remember,
    until,
)
from tests.support.world import Kill, World
from turnloom import (
    Answer,
    Guards,
    Loom,
    LoopDetection,
    ReactionFailed,
    RunBudget,
    Selection,
    Strategies,
    Task,
    ToolCall,
    use_ui_tool,
)

# --------------------------------------------------------------- how they answer


@scene
async def the_best_of_three_tries(world: World, where: Path) -> None:
    """Of three tries one fails, and the best of the others counts; killed when two were made."""

    async def script(app: Loom) -> None:
        async def attempt(task: Task) -> Receipt:
            number = int(task.key.split("/s")[-1].partition("/")[0])
            return await fail(task) if number == 2 else Receipt(total=number)

        async def score(answer: Answer) -> int:
            return answer.artifacts[0].value.total

        board = app.board()
        clerk = board.agent("clerk").consumes(Order).publishes(Receipt).with_engines(attempt)
        clerk.best_of(3, score)
        await board.resume()
        await board.publish(Order(), id="o1")
        assert not await idle(board)

    await world.lives(script, Kill("model.answered"))


@scene
async def engines_in_a_row_fail_and_are_tried_again(world: World, where: Path) -> None:
    """A second engine goes on with what the first one said. The first one fails; somebody wants it
    tried again; killed when that is on record, and when the first engine has answered."""
    once = failing_once()

    async def draft(task: Task) -> str:
        await once(task)
        return "Take the small box."

    async def wrap(task: Task) -> Parcel:
        return Parcel(notes=task.exchanges[-1].text)

    async def script(app: Loom) -> None:
        board = app.board()
        packer = board.agent("packer").consumes(Order).publishes(Parcel)
        packer.with_engines(draft, wrap).with_context(remember)
        board.agent("cashier").consumes(Order).with_engines(look).with_context(remember)
        await board.resume()
        order = await board.publish(Order(), id="o1")
        await idle(board)
        if "retry.asked" not in await kinds(app):
            assert await board.retry(order) == 1
        assert not await idle(board)

    await world.lives(script, Kill("retry.asked"), Kill("model.answered"))


@scene
async def agents_called_directly(world: World, where: Path) -> None:
    """An agent is given something by a program: what it makes is published, or not, or it fails."""
    once = failing_once()

    async def script(app: Loom) -> None:
        board = app.board()
        board.agent("packer").publishes(Parcel).with_engines(pack)
        board.agent("broken").publishes(Parcel).with_engines(once)
        board.agent("cashier").consumes(Parcel).publishes(Payment).with_engines(charge)
        await board.invoke("packer", Order(item="tea"))
        await idle(board)
        await board.invoke("packer", Order(item="ink"), publish=False)
        try:
            await board.invoke("broken", Order(item="jam"))
        except ReactionFailed as failure:
            await board.retry(failure)
        assert not await idle(board)

    await world.lives(script)


@scene
async def tools_side_by_side_on_a_board(world: World, where: Path) -> None:
    """Three tools are called at once, of which one fails and one is not there; killed when two of
    them were called, and when the first one has returned."""

    async def weigh(item: str) -> int:
        """The weight of a thing."""
        return len(item)

    async def price(item: str) -> int:
        """The price of a thing."""
        raise ValueError("no price")

    calls = ToolCall("weigh", {"item": "tea"}), ToolCall("price", {"item": "tea"})

    async def script(app: Loom) -> None:
        board = app.board()
        packer = board.agent("packer").consumes(Order).publishes(Parcel)
        packer.with_tools(weigh, price).with_engines(calling(*calls, ToolCall("paint", {})))
        await board.resume()
        await board.publish(Order(), id="o1")
        assert not await idle(board)

    await world.lives(script, Kill("tool.called", 2), Kill("tool.returned"))


@scene
async def a_tool_on_a_board_asks(world: World, where: Path) -> None:
    """Tools of two turns ask a person, one after the other; killed when one has asked, before an
    answer counts, and when a tool has returned with it."""

    async def confirm(item: str) -> Any:
        """Ask whether an item may go."""
        return await use_ui_tool("confirm", {"item": item})

    async def script(app: Loom) -> None:
        board = app.board()
        for name in ("one", "two"):
            agent = board.agent(name).consumes(Order).publishes(Parcel).with_tools(confirm)
            agent.with_engines(calling(ToolCall("confirm", {"item": name})))
        await board.resume()
        order = await board.publish(Order(), id="o1")
        await idle(board)
        run = app.handle(order.run or "")
        while question := await run.question():
            await run.answer(question.id, f"{question.payload['item']} may go")
            await idle(board)

    before = Kill("question.answered", before=True)
    await world.lives(script, Kill("question.asked"), before, Kill("tool.returned"))


@scene
async def runs_cancelled_during_turns(world: World, where: Path) -> None:
    """Of three runs one is cancelled while two models are asked, then all that are left; nothing
    comes of it."""

    async def never(task: Task) -> Any:
        await asyncio.get_running_loop().create_future()

    async def script(app: Loom) -> None:
        board = app.board()
        board.agent("packer").consumes(Order).publishes(Parcel).with_engines(never)
        board.agent("cashier").consumes(Order).publishes(Payment).with_engines(never)
        first, *_ = await board.publish_many([Order(item=each) for each in ("tea", "ink", "jam")])
        await until(app, board, "model.called", 6)
        assert await board.cancel(first.run, reason="sold out") == 1
        await until(app, board, "run.cancelled")
        assert await board.cancel(reason="closed") == 2
        await idle(board)

    await world.lives(script)


# ------------------------------------------------------------------- what stops


@scene
async def turns_that_lead_to_turns_have_a_limit(world: World, where: Path) -> None:
    """An agent that wakes itself is stopped after so many turns; killed right before that."""

    async def again(task: Task) -> list[Order]:
        return [Order(number=task.inputs[0].payload["number"] + 1)]

    async def script(app: Loom) -> None:
        board = app.board(max_turns=3)
        agent = board.agent("loop").consumes(Order).publishes(Order).with_engines(again)
        agent.prevent_self_trigger(False)
        await board.resume()
        await board.publish(Order(), id="o1")
        await idle(board)

    await world.lives(script, Kill("limit.reached", before=True))


@scene
async def a_budget_on_a_board_is_used_up(world: World, where: Path) -> None:
    """A run may call two models: two turns have theirs, and the third one has none. Killed when
    something is kept for the second call."""

    async def script(app: Loom) -> None:
        budget = RunBudget(model_calls=2, steps=9, tokens=9000)
        board = app.board(guards=Guards(budget=budget))
        board.agent("packer").consumes(Order).publishes(Parcel).with_engines(pack)
        board.agent("cashier").consumes(Parcel).publishes(Payment).with_engines(charge)
        board.agent("watcher").consumes(Payment).with_engines(look)
        await board.resume()
        await board.publish(Order(), id="o1")
        await idle(board)

    await world.lives(script, Kill("budget.reserved", 3))


@scene
async def a_loop_on_a_board_is_detected(world: World, where: Path) -> None:
    """An agent that makes the same again and again: a person is asked, says something, and in the
    end stops it. Killed when the loop was detected."""

    async def same(task: Task) -> Order:
        return Order()

    strategies = Strategies(exact_repetition="escalate")
    detection = LoopDetection(window=2, similarity=None, strategies=strategies)

    async def script(app: Loom) -> None:
        board = app.board(guards=Guards(loop_detection=detection), max_turns=9)
        agent = board.agent("one").consumes(Order).publishes(Order).with_engines(same)
        agent.prevent_self_trigger(False)
        await board.resume()
        order = await board.publish(Order(), id="o1")
        await idle(board)
        run = app.handle(order.run or "")
        while question := await run.question():
            is_first = (await kinds(app)).count("question.asked") == 1
            await run.answer(question.id, "Pack it." if is_first else "stop")
            await idle(board)

    await world.lives(script, Kill("loop.detected"))


@scene
async def one_of_two_is_chosen_on_a_board(world: World, where: Path) -> None:
    """Of two agents one gets an order; what is believed of them changes with how they do. Killed
    when one was chosen, and when one was judged."""

    async def work(task: Task) -> Parcel:
        return await (fail(task) if task.agent == "bob" else pack(task))

    selection = Selection(candidates=("ann", "bob"), seed=2, decay=0.1)

    async def script(app: Loom) -> None:
        board = app.board(guards=Guards(selection=selection))
        for name in ("ann", "bob"):
            board.agent(name).consumes(Order).publishes(Parcel).with_engines(work)
        board.agent("eve").consumes(Order).with_engines(look).with_context(remember)
        await board.resume()
        for number in (1, 2, 3):
            await board.publish(Order(number=number), id=f"o{number}")
            await idle(board)

    await world.lives(script, Kill("selection.made", 2), Kill("selection.judged"))
