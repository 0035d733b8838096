"""Boards whose logs are golden: who is woken, what is collected, and what agents are shown."""

import asyncio
from pathlib import Path
from typing import Any

from tests.golden import board_turns
from tests.golden.scenes import scene
from tests.golden.shop import (
    MINUTE,
    SOON,
    Order,
    Parcel,
    Payment,
    Receipt,
    derived,
    idle,
    look,
    pack,
    remember,
    side_by_side,
    sign,
    until,
)
from tests.support.world import Kill, World
from turnloom import (
    After,
    Answer,
    Batch,
    Budget,
    ContextRequest,
    ContextSlice,
    DefaultCorrelationProvider,
    Join,
    Labelled,
    Loom,
    Private,
    Publication,
    RagCollection,
    RedactingProvider,
    RetrievalResult,
    Task,
    Tenant,
    from_history,
    from_literal,
    from_provider,
    from_retrieval,
    from_state,
    from_variables,
)
from turnloom.testing import InMemorySearch

__all__ = ["board_turns"]


# --------------------------------------------------------------- who is woken


@scene
async def an_order_goes_through_a_shop(world: World, where: Path) -> None:
    """Two agents take an order side by side, and a third one waits for what both made."""

    async def script(app: Loom) -> None:
        board = app.board(user_id="ann", app_id="acme")
        side_by_side(board)
        board.agent("clerk").consumes(Payment, Parcel).publishes(Receipt).with_engines(sign)
        board.agent("watcher").consumes(Receipt).with_engines(look)
        await board.publish(Order(), id="o1", tags={"rush"}, partition="north")
        assert not await idle(board)

    await world.lives(script)


@scene
async def an_order_killed_in_parallel_turns(world: World, where: Path) -> None:
    """The same in five lives: killed when two turns have begun and the model of one was called,
    when that of the other was called, when that one has published, and right before the end."""

    async def script(app: Loom) -> None:
        board = app.board()
        side_by_side(board)
        board.agent("clerk").consumes(Payment, Parcel).publishes(Receipt).with_engines(sign)
        await board.resume()
        await board.publish(Order(), id="o1")
        assert not await idle(board)

    kills = Kill("artifact.consumed"), Kill("model.called"), Kill("artifact.published")
    await world.lives(script, *kills, Kill("run.finished", before=True))


@scene
async def who_is_not_woken(world: World, where: Path) -> None:
    """Agents sleep on for many reasons: conditions, tags, producers, visibility, themselves."""

    async def is_large(order: Order) -> bool:
        return order.number > 5

    async def is_small(order: Order) -> bool:
        return order.number < 5

    async def breaks(order: Order) -> bool:
        raise LookupError("no such shelf")

    async def echo(task: Task) -> Publication:
        return Publication(Order(number=1), {"echo"})

    async def script(app: Loom) -> None:
        board = app.board()
        board.register(Receipt)
        board.agent("large").consumes(Order, where=is_large).with_engines(look)
        board.agent("small").consumes(Order, where=is_small).with_engines(look)
        board.agent("broken").consumes(Order, where=breaks).with_engines(look)
        board.agent("hasty").consumes(Order, tags={"rush"}).with_engines(look)
        board.agent("inside").consumes(Order, from_agents="echo").with_engines(look)
        board.agent("boss").labels("boss").consumes(Order).with_engines(look)
        board.agent("acme").consumes(Order).with_engines(look)
        echoing = board.agent("echo").consumes(Order, tags={"echo"}).with_engines(echo)
        echoing.publishes(Order, visibility=Private({"echo", "inside"}))
        few = Private({"large", "small", "broken", "hasty", "inside"})
        await board.publish(Order(number=9), tags={"rush"}, visibility=few, id="few")
        await board.publish(Order(), tags={"echo"}, visibility=Private({"echo"}), id="echo")
        await board.publish(Order(), visibility=Labelled({"boss"}), id="labelled")
        await board.publish(Order(), visibility=Tenant("acme"), id="tenant")
        await board.publish(Receipt(total=1), id="nobody")
        assert len(await idle(board)) == 1

    await world.lives(script)


@scene
async def a_correlation_goes_on(world: World, where: Path) -> None:
    """Things are published into a correlation while its run goes on, while it waits, and when it
    has ended; then the correlation goes on in another run."""
    opened = asyncio.Event()

    async def slow(task: Task) -> Parcel:
        if task.inputs[0].payload["item"] == "tea":
            await opened.wait()
        return await pack(task)

    async def script(app: Loom) -> None:
        board = app.board()
        board.agent("packer").consumes(Order).publishes(Parcel).with_engines(slow)
        board.agent("clerk").consumes(Parcel, Payment).publishes(Receipt).with_engines(sign)
        await board.publish(Order(item="tea"), correlation_id="c1", id="o1")
        await until(app, board, "model.called")
        await board.publish(Order(item="ink"), correlation_id="c1", id="o2")
        await until(app, board, "artifact.published", 3)
        opened.set()
        await idle(board)
        for number in (1, 2):
            await board.publish(Payment(), correlation_id="c1", id=f"p{number}")
            await idle(board)
        await board.publish(Payment(), correlation_id="c1", id="p3")
        await idle(board)

    await world.lives(script)


@scene
async def an_embargo_opens(world: World, where: Path) -> None:
    """An order can be seen in a minute, by some an hour later; killed while it is waited for, and
    when it has opened."""
    start = world.clock.time
    embargo = After(start + MINUTE, After(start + 60 * MINUTE, Labelled({"boss"})))

    async def script(app: Loom) -> None:
        board = app.board()
        for name in ("boss", "packer"):
            agent = board.agent(name).labels(name).consumes(Order).publishes(Parcel)
            agent.with_engines(pack).with_context(remember)
        await board.resume()
        await board.publish(Order(), visibility=After(start + MINUTE), id="o1")
        await board.publish(Order(item="ink"), visibility=embargo, id="o2")
        await idle(board)
        for instant in (start + MINUTE, start + 60 * MINUTE):
            world.clock.time = max(world.clock.time, instant)
            await board.resume()
            await idle(board)

    await world.lives(script, Kill("run.paused", 2), Kill("artifact.opened"))


# ------------------------------------------------------------- what is collected


@scene
async def orders_meet_payments(world: World, where: Path) -> None:
    """Orders and payments of all runs are joined by a key; who has none, or waits too long, is let
    go."""

    async def by_item(value: Order | Payment) -> Any:
        if value.item == "?":
            raise LookupError("no label")
        return value.item

    async def script(app: Loom) -> None:
        board = app.board()
        clerk = board.agent("clerk").consumes(Order, Payment, join=Join(by_item, 2 * MINUTE))
        clerk.publishes(Receipt).with_engines(sign)
        await board.publish(Order(item="ink"), id="ink")
        await board.publish(Order(item="tea"), id="tea", correlation_id="c1")
        await board.publish(Order(item="?"), id="unknown")
        await idle(board)
        await board.publish(Payment(item="tea"), id="paid")
        await idle(board)
        world.clock.advance(2 * MINUTE)
        await board.resume()
        await idle(board)
        await board.publish(Payment(item="ink"), id="late")
        await idle(board)

    await world.lives(script)


@scene
async def batches_by_size_by_time_and_by_close(world: World, where: Path) -> None:
    """Orders of different runs are taken two at a time, or as many as there are after a minute, or
    when the board is closed."""

    async def script(app: Loom) -> None:
        board = app.board()
        clerk = board.agent("clerk").consumes(Order, batch=Batch(2, MINUTE))
        clerk.publishes(Receipt).with_engines(sign)
        for number in (1, 2, 3):
            await board.publish(Order(number=number), id=f"o{number}")
            await until(app, board, "artifact.received", number)
            await until(app, board, "run.paused", number + 1)  # the collecting run rests
        await until(app, board, "run.finished", 4)
        world.clock.advance(MINUTE)
        await board.resume()
        await idle(board)
        await board.publish(Order(number=4), id="o4")
        await until(app, board, "artifact.received", 4)
        await until(app, board, "run.paused", 6)
        await board.close(SOON)

    await world.lives(script)


@scene
async def a_batch_killed_while_it_gets_a_run(world: World, where: Path) -> None:
    """A batch is taken, its run begins, and that is noted: killed after each of these."""

    async def script(app: Loom) -> None:
        board = app.board()
        clerk = board.agent("clerk").consumes(Order, batch=Batch(2)).publishes(Receipt)
        clerk.with_engines(sign)
        await board.resume()
        for number in (1, 2):
            await board.publish(Order(number=number), id=f"o{number}")
            await idle(board)

    taken, begun = Kill("artifact.consumed"), Kill("run.opened", before=True)
    await world.lives(script, Kill("artifact.received", 2), taken, begun, Kill("run.opened"))


@scene
async def lines_of_an_order_are_batched(world: World, where: Path) -> None:
    """One turn makes three things, with a wrong number of them at first; they are shipped one by
    one, and reported on together."""

    async def split(task: Task) -> list[Parcel]:
        number = 3 if task.exchanges else 2
        return [Parcel(item=f"tea {place}") for place in range(number)]

    async def script(app: Loom) -> None:
        board = app.board()
        board.agent("splitter").consumes(Order).publishes(Parcel, fan_out=3).with_engines(split)
        shipper = board.agent("shipper").consumes(Parcel).with_engines(look).max_concurrency(1)
        shipper.with_context(DefaultCorrelationProvider(limit=1))
        board.agent("clerk").consumes(Parcel, batch=Batch(3)).publishes(Receipt).with_engines(sign)
        await board.publish(Order(), id="o1")
        assert not await idle(board)

    await world.lives(script)


# --------------------------------------------------------- what agents are shown


@scene
async def what_agents_see_of_a_board(world: World, where: Path) -> None:
    """Context by default, redacted, and from a fallback; each agent sees what it may, and what is
    made of things for a few is for those few."""

    async def burns(request: ContextRequest) -> ContextSlice:
        raise LookupError("the archive burns")

    async def script(app: Loom) -> None:
        board = app.board()
        board.register(Payment)
        boss = board.agent("boss").labels("boss").consumes(Order)
        boss.publishes(Receipt, inherit=True).with_engines(sign)
        board.agent("acme").consumes(Order).with_engines(look)
        redacted = RedactingProvider(DefaultCorrelationProvider(), keys={"amount"})
        board.agent("clerk").consumes(Order).with_engines(look).with_context(redacted)
        board.agent("guest").consumes(Order).with_engines(look).with_context(
            burns, fallback=remember
        )
        audiences = {"boss": Labelled({"boss"}), "acme": Tenant("acme"), "eve": Private({"eve"})}
        for name, audience in audiences.items():
            value = Payment(item=f"for {name}", amount=7)
            await board.publish(value, visibility=audience, correlation_id="c1", id=name)
        await board.publish(Payment(item="for all", amount=7), correlation_id="c1", id="all")
        await board.publish(Order(), correlation_id="c1", id="o1")
        assert not await idle(board)

    await world.lives(script)


class Manual(RagCollection):
    """How things are packed."""

    name = "manual"


@scene
async def context_from_sources_has_a_budget(world: World, where: Path) -> None:
    """All kinds of sources are shown as far as there is room; killed when it is on record what was
    found."""

    async def wins(request: ContextRequest) -> ContextSlice:
        return ContextSlice([{"type": "Win", "payload": {"item": "lamp"}}])

    async def greet(task: Task) -> Answer:
        return Answer("Hello there.", artifacts=(Publication(Order()),))

    async def script(app: Loom) -> None:
        search = InMemorySearch()
        tea = RetrievalResult("Tea is packed dry.", 0.9, "tea.md", chunk=2)
        search.seed(tea, RetrievalResult("Jars are packed upright.", 0.8, "jars.md"))
        app.register_collection(Manual, search)
        board = app.board(variables={"definitions": {"tier": derived("gold", "string")}})
        board.agent("greeter").consumes(Payment).publishes(Order).with_engines(greet)
        board.agent("packer").consumes(Order).publishes(Parcel).with_engines(pack).with_sources(
            from_state("item", priority=9),
            from_retrieval(Manual, "how to pack {item}", priority=8, title="Rules"),
            from_retrieval(Manual, "all", top_k=1),
            from_variables("tier"),
            from_provider(wins),
            from_history(last=2),
            from_literal("Of little use. " * 9),
            budget=Budget(70),
        )
        await board.resume()
        await board.publish(Payment(), id="p1")
        assert not await idle(board)

    await world.lives(script, Kill("retrieval.searched"))


@scene
async def variables_and_hooks_of_a_board(world: World, where: Path) -> None:
    """Hooks run before and after the run and its turns, write, are skipped and fail; what agents
    say and tools write changes variables that others are shown. Killed when a hook was called, and
    when one has written."""

    async def promote(context_variables: Any) -> None:
        context_variables["tier"] = "silver"

    async def breaks(context_variables: Any) -> None:
        raise LookupError("no bell")

    async def rest(context_variables: Any) -> None:
        pass

    async def speak(task: Task) -> Answer:
        return Answer("It weighs a ton.", artifacts=(Publication(Parcel()),))

    says = {"type": "agent_text", "agent": "packer", "match": {"regex": "weighs a (.*)\\."}}
    follows = {"type": "context_changed", "variable": "weight", "equals": "ton", "value": True}
    variables = {
        "definitions": {
            "tier": derived("gold", "string"),
            "weight": derived("", "string", {**says, "capture": 1}),
            "heavy": derived(False, "boolean", follows),
        },
        "agents": {"checker": {"variables": ["tier", "weight", "heavy"]}},
    }
    hooks = [
        {"trigger": "before_chat", "function": promote},
        {"trigger": "before_agent", "agent": "checker", "function": breaks},
        {"trigger": "before_agent", "function": rest, "when": "${heavy} == true"},
        {"trigger": "after_agent", "agent": "packer", "function": rest},
        {"trigger": "after_chat", "function": rest, "on": "always"},
    ]

    async def script(app: Loom) -> None:
        board = app.board(variables=variables, hooks=hooks)
        board.agent("packer").consumes(Order).publishes(Parcel).with_engines(speak)
        board.agent("checker").consumes(Parcel).with_engines(look)
        await board.resume()
        await board.publish(Order(), id="o1")
        assert not await idle(board)

    await world.lives(script, Kill("lifecycle.tool_call"), Kill("context.changed", 2))
