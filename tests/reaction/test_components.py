"""What is put around turns and calls on a board, or beside them."""

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest

from tests.reaction.scenes import (
    Clerk,
    Order,
    Parcel,
    everything,
    facts,
    fail,
    failures,
    idle,
    pack,
)
from turnloom import Board, Loom, StateDelegatingProvider
from turnloom.agents.spec import Answer, Task
from turnloom.assembly.spec import TurnContext

Turn = Callable[[], Awaitable[None]]
Call = Callable[[Task], Awaitable[Any]]


class Around:
    """Notes what it is put around."""

    def __init__(self, name: str, notes: list[str]) -> None:
        self._name, self._notes = name, notes

    async def around_turn(self, ctx: TurnContext, call_next: Turn) -> None:
        self._notes.append(f"{self._name} turn {ctx.turn}")
        await call_next()
        self._notes.append(f"{self._name} turn over")

    async def around_call(self, task: Task, call_next: Call) -> Answer:
        self._notes.append(f"{self._name} call")
        answer = await call_next(task)
        self._notes.append(f"{self._name} call over")
        return answer


async def test_the_first_component_is_outermost(board: Board) -> None:
    notes: list[str] = []
    board.agent("clerk").consumes(Order).publishes(Parcel).with_engines(
        Clerk(pack)
    ).with_components(Around("a", notes), Around("b", notes))
    await board.publish(Order())
    await idle(board)
    assert notes == [
        *("a turn 1", "b turn 1", "a call", "b call"),
        *("b call over", "a call over", "b turn over", "a turn over"),
    ]


class Preparing:
    """Prepares the context of a turn."""

    async def around_turn(self, ctx: TurnContext, call_next: Turn) -> None:
        found, _ = await ctx.board.query_artifacts()
        ctx.state["context_snapshot"] = [
            {"type": "Note", "payload": {"item": f"{len(found)} so far, run {ctx.run.workflow}"}}
        ]
        await call_next()


async def test_a_component_prepares_what_a_provider_gives(board: Board) -> None:
    clerk = Clerk()
    board.agent("clerk").consumes(Order).with_engines(clerk).with_components(
        Preparing()
    ).with_context(StateDelegatingProvider())
    for _ in range(2):
        await board.publish(Order())
        await idle(board)
    assert clerk.seen == [["1 so far, run board"], ["2 so far, run board"]]


class Mood:
    """Leaves something in the state of the turn."""

    async def around_turn(self, ctx: TurnContext, call_next: Turn) -> None:
        assert ctx.state == {}, "the state of another turn"
        ctx.state.update(mood="good", secret="none of your business")
        await call_next()


async def test_a_filter_includes_what_the_state_holds(board: Board) -> None:
    clerk = Clerk()
    board.agent("clerk").consumes(Order).with_engines(clerk).with_components(
        Mood()
    ).with_context_filter(limit=1, include_state_keys={"mood"})
    for _ in range(2):
        await board.publish(Order(item="tea"))
        await idle(board)
    shown = str(clerk.tasks[-1].context.items)
    assert "good" in shown
    assert "business" not in shown + clerk.tasks[-1].prompt


class Rewriting:
    """Changes what is asked and what is answered."""

    async def around_call(self, task: Task, call_next: Call) -> Answer:
        answer = await call_next(msgspec.structs.replace(task, system="Be brief."))
        return msgspec.structs.replace(answer, text=answer.text.upper())


async def test_a_component_changes_a_call_and_its_answer(app: Loom, board: Board) -> None:
    clerk = Clerk(lambda task: Answer(f"{task.system} done"))
    board.agent("clerk").consumes(Order).with_engines(clerk).with_components(Rewriting())
    await board.publish(Order())
    await idle(board)
    assert [each.text for each in await facts(app, "agent.text")] == ["BE BRIEF. DONE"]


class Replacing:
    """Answers itself."""

    async def around_call(self, task: Task, call_next: Call) -> Any:
        return Parcel(item="from the shelf")


async def test_a_component_answers_in_the_engines_place(board: Board) -> None:
    clerk = Clerk(pack)
    board.agent("clerk").consumes(Order).publishes(Parcel).with_engines(clerk).with_components(
        Replacing()
    )
    await board.publish(Order())
    await idle(board)
    assert clerk.tasks == []
    (parcel,) = await everything(board, "Parcel")
    assert parcel.payload["item"] == "from the shelf"


class Silent:
    """Does not go on."""

    async def around_turn(self, ctx: TurnContext, call_next: Turn) -> None:
        pass


class Twice:
    """Goes on twice."""

    async def around_turn(self, ctx: TurnContext, call_next: Turn) -> None:
        await call_next()
        await call_next()


class Raising:
    """Goes on and fails."""

    async def around_turn(self, ctx: TurnContext, call_next: Turn) -> None:
        await call_next()
        raise LookupError("what now?")


class Forgetful:
    """Goes on, and keeps the answer to itself."""

    async def around_call(self, task: Task, call_next: Call) -> Any:
        await call_next(task)


@pytest.mark.parametrize(
    ("component", "problem"),
    [
        (Forgetful(), "UsageError"),
        (Silent(), "call_next"),
        (Twice(), "call_next"),
        (Raising(), "LookupError: what now?"),
    ],
)
async def test_a_component_that_goes_wrong_fails_the_turn(
    board: Board, component: Any, problem: str
) -> None:
    agent = board.agent("clerk").consumes(Order).publishes(Parcel)
    agent.with_engines(Clerk(pack)).with_components(component)
    await board.publish(Order())
    (failure,) = await failures(board)
    assert problem in failure
    assert await everything(board, "Parcel") == []


class Soothing:
    """Hides that something failed."""

    async def around_call(self, task: Task, call_next: Call) -> Any:
        try:
            return await call_next(task)
        except RuntimeError:
            return Parcel(item="something else")


async def test_a_component_makes_good_for_an_engine(board: Board) -> None:
    board.agent("clerk").consumes(Order).publishes(Parcel).with_engines(
        Clerk(fail)
    ).with_components(Soothing())
    await board.publish(Order())
    await idle(board)
    (parcel,) = await everything(board, "Parcel")
    assert parcel.payload["item"] == "something else"


async def test_components_reach_neither_the_driver_nor_another_reader(board: Board) -> None:
    seen: list[TurnContext] = []

    class Curious:
        async def around_turn(self, ctx: TurnContext, call_next: Turn) -> None:
            seen.append(ctx)
            await call_next()

    board.agent("clerk").consumes(Order).with_engines(Clerk()).with_components(Curious())
    await board.publish(Order())
    await idle(board)
    (ctx,) = seen
    assert {name for name in dir(ctx) if not name.startswith("_")} == {
        *("run", "state", "board", "turn")
    }
    assert {name for name in dir(ctx.board) if not name.startswith("_")} == {
        *("query_artifacts", "iter_artifacts", "get", "summary")
    }
