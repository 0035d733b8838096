"""What engines read on the board: as their agent may, on record, and part of who may see what they
make."""

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict

from tests.reaction.scenes import Clerk, Order, Parcel, Payment, facts, failures, idle
from tests.support.folders import write_folder
from tests.support.plays import every
from tests.support.world import Kill, World
from turnloom import (
    AgentStep,
    Answer,
    Board,
    Flow,
    Loom,
    Publication,
    StateDelegatingProvider,
    Task,
    ToolCall,
)
from turnloom.assembly.spec import TurnContext
from turnloom.board.spec import FilterConfig, Labelled, Private, Public

PAYMENTS = FilterConfig(types={"Payment"})
MADE = Answer(artifacts=(Publication(Parcel(item="tea")),))


async def read(task: Task) -> int:
    """How many payments the agent may see."""
    assert task.board is not None
    found, _ = await task.board.query_artifacts(PAYMENTS)
    return len(found)


async def reading(task: Task) -> Answer:
    await read(task)
    return MADE


async def silent(task: Task) -> Answer:
    return MADE


def look() -> str:
    """Look somewhere else."""
    return "Nothing."


async def reading_first(task: Task) -> Answer:
    """It reads, looks, and makes something in the next call without reading again."""
    if task.exchanges:
        return MADE
    await read(task)
    return Answer(calls=(ToolCall("look", {}),))


async def pay(board: Board) -> None:
    """Payments that some agents may see."""
    board.register(Payment)
    for visibility in (Labelled({"hr"}), Private({"boss"}), Public()):
        await board.publish(Payment(), visibility=visibility)


def clerk(board: Board, *engines: Callable[[Task], Awaitable[Answer]]) -> Any:
    agent = board.agent("clerk").consumes(Order).publishes(Parcel, inherit=True).labels("hr")
    return agent.with_engines(*engines)


async def test_an_engine_reads_as_its_agent_may(board: Board) -> None:
    seen: dict[str, int] = {}

    async def count(task: Task) -> None:
        seen[task.agent] = await read(task)

    await pay(board)
    board.agent("clerk").consumes(Order).with_engines(count).labels("hr")
    board.agent("boss").consumes(Order).with_engines(count)
    board.agent("other").consumes(Order).with_engines(count)
    await board.publish(Order())
    await idle(board)
    assert seen == {"clerk": 2, "boss": 2, "other": 1}


@pytest.mark.parametrize(
    ("engines", "visibility"),
    [
        ((reading,), Labelled({"hr"})),
        ((silent,), Public()),
        ((reading_first,), Labelled({"hr"})),
        ((reading, silent), Labelled({"hr"})),
    ],
    ids=["reads", "does not", "in an earlier call", "in an earlier engine"],
)
async def test_what_is_made_is_for_those_who_may_see_what_was_read(
    app: Loom, board: Board, engines: Any, visibility: Any
) -> None:
    await pay(board)
    clerk(board, *engines).with_tools(look)
    await board.publish(Order())
    await idle(board)
    *_, published = await facts(app, "artifact.published")
    assert published.artifact.visibility == visibility


async def test_what_was_read_is_on_record(app: Loom, board: Board) -> None:
    await pay(board)
    clerk(board, reading)
    await board.publish(Order())
    await idle(board)
    (answered,) = await facts(app, "model.answered")
    assert len(answered.read) == 2 and answered.visibility == (Labelled({"hr"}),)


async def test_a_component_around_the_call_reads_alike(app: Loom, board: Board) -> None:
    class Looks:
        async def around_call(self, task: Task, call_next: Any) -> Answer:
            await read(task)
            return await call_next(task)

    await pay(board)
    clerk(board, silent).with_components(Looks())
    await board.publish(Order())
    await idle(board)
    *_, published = await facts(app, "artifact.published")
    assert published.artifact.visibility == Labelled({"hr"})


@pytest.mark.parametrize("shows", [True, False])
async def test_a_component_around_the_turn_reads_alike(
    app: Loom, board: Board, shows: bool
) -> None:
    """Whether a provider shows what it read, or it passes that to the engine in its own way."""

    class Looks:
        async def around_turn(self, ctx: TurnContext, call_next: Any) -> None:
            found, _ = await ctx.board.query_artifacts(PAYMENTS)
            note = {"type": "Note", "payload": {"text": f"{len(found)} payments"}}
            ctx.state["context_snapshot"] = [note]
            await call_next()

    await pay(board)
    agent = clerk(board, silent).with_components(Looks())
    if shows:
        agent.with_context(StateDelegatingProvider())
    await board.publish(Order())
    await idle(board)
    *_, published = await facts(app, "artifact.published")
    assert published.artifact.visibility == Labelled({"hr"})
    (frame,) = await facts(app, "frame.assembled")
    assert frame.visibility == ((Labelled({"hr"}),) if shows else ())


async def test_nothing_is_read_when_the_call_is_over(board: Board) -> None:
    kept: list[Task] = []

    async def keep(task: Task) -> Answer:
        kept.append(task)
        await read(kept[0])
        return MADE

    await pay(board)
    clerk(board, keep)
    await board.publish(Order())
    await idle(board)
    await board.publish(Order())
    (failed,) = await failures(board)
    assert "UsageError" in failed and len(kept) == 2


async def test_a_program_that_is_killed_forgets_nothing(tmp_path: Path) -> None:
    async def script(app: Loom) -> None:
        board = app.board()
        clerk(board, reading_first).with_tools(look)
        await board.resume()
        if not await app.runs():
            await pay(board)
            await board.publish(Order())
        await idle(board)

    world = World()
    await world.lives(script, Kill("tool.returned"))
    events = [event for run in (await world.logs()).values() for event in run]
    *_, published = every(events, "artifact.published")
    assert published.artifact.visibility == Labelled({"hr"})


class Notes(BaseModel):
    """What a flow knows."""

    model_config = ConfigDict(frozen=True)
    seen: str = ""


class Look(AgentStep[Notes]):
    """A step whose engine looks at the board."""

    def user_prompt(self, state: Notes) -> str:
        """What it is asked."""
        return "How many?"

    def apply(self, state: Notes, answer: Any, context: Any) -> dict[str, Any]:
        """What it saw."""
        return {"seen": answer}


async def test_conversations_and_flows_have_a_board_too(tmp_path: Path) -> None:
    async def count(task: Task) -> Answer:
        return Answer(f"{await read(task)} payments.")

    async with Loom(store="memory", engine=count) as app:
        board = app.board()
        board.agent("other").consumes(Order).with_engines(Clerk())
        await pay(board)
        outcome = await app.run(Flow("look", Notes).start_with(Look), Notes())
        assert outcome.state.seen == "1 payments."
        agents = json.dumps({"boss": {"system_message": "Look."}})
        run = await app.start(write_folder(tmp_path, {"agents.json": agents}))
        await run.finished()
        (said,) = every(await app.history.events(run.id), "agent.text")
        assert said.text == "2 payments."
