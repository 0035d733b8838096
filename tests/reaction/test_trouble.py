"""What goes wrong in the code of users or in the store reaches whoever waits, and nothing else."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, Field, SecretStr

from tests.reaction.scenes import SOON, Clerk, Order, Parcel, Payment, everything, idle, pack
from tests.support.tables import tables_of
from turnloom import (
    Board,
    ContextRequest,
    ContextSlice,
    InvalidArtifact,
    Loom,
    PlanChanged,
    Publication,
    artifact_type,
)
from turnloom.agents.spec import Task


class Gone(BaseException):
    """What tests and tools raise to end more than a call."""


def gone(*given: Any) -> Any:
    raise Gone("all of it")


def cancelled(*given: Any) -> Any:
    raise asyncio.CancelledError


async def cancelled_itself(task: Task) -> None:
    current = asyncio.current_task()
    assert current is not None
    current.cancel()
    await asyncio.sleep(0)


async def failures(board: Board) -> str:
    group = await board.run_until_idle(SOON, raise_errors=False)
    assert group is not None
    return "\n".join(map(str, group.exceptions))


@pytest.mark.parametrize(
    "wrong",
    [{"visibility": "public"}, {"tags": {""}}, {"tags": "abc"}, {"tags": 5}, {"partition": 3}],
)
async def test_what_cannot_be_published_fails_its_turn_alone(
    board: Board, wrong: dict[str, Any]
) -> None:
    clerk = Clerk(pack)
    board.agent("odd").consumes(Order).publishes(Parcel).with_engines(
        Clerk(lambda task: Publication(pack(task), **wrong))
    )
    board.agent("clerk").consumes(Order).publishes(Parcel).with_engines(clerk)
    for number in (1, 2):
        await board.publish(Order(number=number), correlation_id="c")
        assert next(iter(wrong)) in await failures(board)
        assert len(clerk.tasks) == number
    assert len(await everything(board, "Parcel")) == 2


async def test_a_publish_that_is_refused_leaves_nothing_behind(board: Board) -> None:
    clerk = Clerk()
    board.agent("clerk").consumes(Order, Payment).with_engines(clerk)
    await board.publish(Order(), correlation_id="c")
    await idle(board)
    with pytest.raises(InvalidArtifact, match="partition"):
        await board.publish(Payment(), correlation_id="c", partition=3)  # type: ignore[arg-type]
    await board.publish(Payment(), correlation_id="c")
    await idle(board)
    assert len(clerk.tasks) == 1


async def test_of_many_none_is_published_if_one_is_not_right(board: Board) -> None:
    board.register(Order)
    bad: Any = Publication(Order(), visibility="public")  # type: ignore[arg-type]
    with pytest.raises(InvalidArtifact, match="visibility"):
        await board.publish_many([Order(), bad, Order()])
    assert await everything(board) == []


@pytest.mark.parametrize("ends", [gone, cancelled])
@pytest.mark.parametrize("where", ["engine", "where", "provider", "component", "score"])
async def test_what_would_end_more_than_its_call_does_not(
    board: Board, where: str, ends: Callable[..., Any]
) -> None:
    async def provide(request: ContextRequest) -> ContextSlice:
        return ends()

    class Around:
        async def around_turn(self, ctx: Any, call_next: Any) -> None:
            ends()

    odd = board.agent("odd")
    odd.consumes(Order, where=ends if where == "where" else None)
    odd.publishes(Parcel).with_engines(Clerk(ends if where == "engine" else pack))
    if where == "provider":
        odd.with_context(provide)
    if where == "component":
        odd.with_components(Around())
    if where == "score":
        odd.best_of(2, ends)
    clerk = Clerk()
    board.agent("clerk").consumes(Payment).with_engines(clerk)
    await board.publish(Order())
    assert "Gone" in (said := await failures(board)) or "CancelledError" in said
    await board.publish(Payment())
    await idle(board)
    assert len(clerk.tasks) == 1


async def test_an_engine_that_cancels_itself_fails_its_turn(board: Board) -> None:
    board.agent("odd").consumes(Order).with_engines(cancelled_itself)
    await board.publish(Order())
    assert "CancelledError" in await failures(board)


async def test_trouble_with_the_store_reaches_whoever_waits(tmp_path: Path) -> None:
    file = tmp_path / "turnloom.db"

    def fill(task: Task) -> Parcel:
        with tables_of(file) as tables:
            tables.fill_disk()
        return Parcel()

    async with Loom(store=file) as app:
        board = app.board()
        board.agent("clerk").consumes(Order).publishes(Parcel).with_engines(Clerk(fill))
        await board.publish(Order())
        assert "the disk is full" in await failures(board)
    with tables_of(file) as tables:
        tables.free_disk()


async def test_a_run_under_another_plan_can_be_given_up(tmp_path: Path) -> None:
    file = str(tmp_path / "turnloom.db")
    async with Loom(store=file) as app:
        board = app.board()
        board.agent("clerk").consumes(Order).with_engines(Clerk(gone))
        order = await board.publish(Order())
        await failures(board)
    async with Loom(store=file) as app:
        board = app.board()
        board.agent("clerk").consumes(Order, Payment).with_engines(Clerk())
        assert order.run is not None
        assert await board.cancel(order.run) == 1
        assert [each.status for each in await app.runs()] == ["cancelled"]
        assert await board.resume() == []


async def test_a_refused_resume_says_which_run_it_is(tmp_path: Path) -> None:
    file = str(tmp_path / "turnloom.db")

    async def never(task: Task) -> None:
        await asyncio.get_running_loop().create_future()

    async with Loom(store=file) as app:
        board = app.board()
        board.agent("clerk").consumes(Order).with_engines(never)
        order = await board.publish(Order())
    async with Loom(store=file) as app:
        board = app.board()
        board.agent("clerk").consumes(Payment).with_engines(Clerk())
        with pytest.raises(PlanChanged, match=f"'{order.run}'"):
            await board.resume()


@artifact_type
class Vault(BaseModel):
    """What does not come back from JSON."""

    key: SecretStr = SecretStr("")
    note: str = Field(default="", exclude=True, repr=False)


@pytest.mark.parametrize("value", [Vault(key=SecretStr("hunter2")), Vault(note="lost")])
async def test_what_is_lost_on_the_way_is_refused(board: Board, value: Vault) -> None:
    with pytest.raises(InvalidArtifact):
        await board.publish(value)


async def test_whoever_waits_sees_what_nobody_subscribes_to(board: Board) -> None:
    board.register(Order)

    async def is_there() -> bool:
        return bool(await everything(board))

    waiting = asyncio.create_task(board.run_until(is_there, SOON))
    await asyncio.sleep(0)
    await board.publish(Order())
    await waiting


@pytest.mark.parametrize("given", ["high", None, True, float("inf")])
async def test_a_score_is_a_number(board: Board, given: Any) -> None:
    clerk = board.agent("clerk").consumes(Order).publishes(Parcel).with_engines(Clerk(pack))
    clerk.best_of(2, lambda answer: given)
    await board.publish(Order())
    assert "score" in await failures(board)


async def test_data_in_the_form_of_a_type_is_an_answer(board: Board) -> None:
    board.agent("clerk").consumes(Order).publishes(Parcel).with_engines(
        Clerk(lambda task: {"item": "tea"})
    )
    await board.publish(Order())
    await idle(board)
    assert [each.payload["item"] for each in await everything(board, "Parcel")] == ["tea"]
