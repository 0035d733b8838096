"""Boards over several lives of a program, and in several programs at once."""

import asyncio
import logging
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, Field, create_model

from tests.reaction.scenes import (
    Clerk,
    Gate,
    Order,
    Parcel,
    Payment,
    everything,
    facts,
    idle,
    pack,
    statuses,
)
from turnloom import Board, Loom
from turnloom.board.spec import artifact_type
from turnloom.errors import PlanChanged, UsageError
from turnloom.reaction.spec import Batch


@pytest.fixture
def file(tmp_path: Path) -> str:
    return str(tmp_path / "turnloom.db")


def declare(app: Loom, engine: Any, **more: Any) -> Board:
    """A board on which orders are packed."""
    board = app.board(**more)
    board.agent("clerk").consumes(Order).publishes(Parcel).with_engines(engine)
    return board


async def test_what_is_done_is_not_done_again_after_a_restart(file: str) -> None:
    clerk = Clerk(pack)
    for _ in range(2):
        async with Loom(store=file) as app:
            board = declare(app, clerk)
            assert await board.resume() == []
            await board.publish(Order(), id="order-1")
            await idle(board)
            assert len(await everything(board, "Parcel")) == 1
    assert len(clerk.tasks) == 1


async def test_a_turn_that_was_cut_off_is_taken_to_its_end_once(file: str) -> None:
    gate, order = Gate(), None
    async with Loom(store=file) as app:
        board = declare(app, gate)
        order = await board.publish(Order())
        await gate.holds(1)
    gate.open()
    async with Loom(store=file) as app:
        board = declare(app, gate)
        assert await board.resume() == [order.run]
        await idle(board)
        assert len(await everything(board, "Parcel")) == 1
        assert len(await facts(app, "artifact.consumed", order.run)) == 1
        assert len(await facts(app, "run.resumed", order.run)) == 1
        assert await statuses(app) == ["finished"]
        assert await board.resume() == []


CHANGES: dict[str, dict[str, Any]] = {
    "variables": {
        "variables": {
            "definitions": {"tier": {"type": "string", "source": {"type": "static", "value": "a"}}}
        }
    },
    "hooks": {"hooks": [{"trigger": "before_chat", "function": print}]},
    "limit": {"max_turns": 7},
}


@pytest.mark.parametrize("part", CHANGES)
async def test_a_run_is_pinned_to_all_that_its_board_declares(file: str, part: str) -> None:
    gate = Gate()
    async with Loom(store=file) as app:
        board = declare(app, gate)
        await board.publish(Order())
        await gate.holds(1)
    gate.open()
    async with Loom(store=file) as app:
        with pytest.raises(PlanChanged, match=f'"{part}"'):
            await declare(app, gate, **CHANGES[part]).resume()
    async with Loom(store=file) as app:
        board = declare(app, gate)
        await board.resume()
        await idle(board)
        assert len(await everything(board, "Parcel")) == 1


def described_type(text: str, field: str, least: int) -> type[BaseModel]:
    """A type of artifacts that says something to readers wherever it can."""
    inner = create_model("Label", __doc__=text, title=(str, Field("", title=text)))
    said = Field("", min_length=least, description=text, examples=[text])
    fields: dict[str, Any] = {field: (str, said), "labels": (list[inner], [])}
    return artifact_type(name="shop.Note")(create_model("Note", __doc__=text, **fields))


def described(
    app: Loom, gate: Gate, text: str, field: str = "description", least: int = 0
) -> Board:
    """A board on which everything that can be described is."""
    tier = {"type": "string", "description": text, "source": {"type": "static", "value": "a"}}
    board = app.board(variables={"definitions": {"tier": tier}})
    clerk = board.agent("clerk").description(text).consumes(Order).publishes(Parcel)
    clerk.consumes(described_type(text, field, least)).with_engines(gate)
    return board


async def test_a_run_continues_when_a_description_changed(file: str) -> None:
    gate = Gate()
    async with Loom(store=file) as app:
        order = await described(app, gate, "Pack.").publish(Order())
        await gate.holds(1)
    gate.open()
    async with Loom(store=file) as app:
        board = described(app, gate, "Pack with care.")
        assert await board.resume() == [order.run]
        await idle(board)
        assert await statuses(app) == ["finished"]


@pytest.mark.parametrize("change", [{"field": "title"}, {"least": 2}])
async def test_a_run_does_not_continue_when_a_type_takes_other_values(
    file: str, change: dict[str, Any]
) -> None:
    gate = Gate()
    async with Loom(store=file) as app:
        await described(app, gate, "Pack.").publish(Order())
        await gate.holds(1)
    gate.open()
    async with Loom(store=file) as app:
        with pytest.raises(PlanChanged, match="shop.Note"):
            await described(app, gate, "Pack.", **change).resume()


async def test_a_board_that_a_program_does_not_declare_is_named(file: str) -> None:
    async with Loom(store=file) as app:
        board = app.board("deals")
        board.agent("clerk").consumes(Order, Payment).with_engines(Clerk())
        order = await board.publish(Order())
        await idle(board)
    async with Loom(store=file) as app:
        app.board("others").agent("clerk").consumes(Order).with_engines(Clerk())
        with pytest.raises(UsageError, match="'deals'"):
            await app.history.definition(order.run or "")


async def test_two_programs_share_a_board(file: str) -> None:
    clerk, batch = Clerk(), Clerk()

    def share(app: Loom) -> Board:
        board = app.board()
        board.agent("clerk").consumes(Order, Payment).with_engines(clerk)
        board.agent("batch").consumes(Order, batch=Batch(2)).with_engines(batch)
        return board

    async with Loom(store=file) as one, Loom(store=file) as two:
        boards = share(one), share(two)
        await boards[0].publish(Order(item="tea"), correlation_id="one")
        await idle(boards[0])
        await boards[1].publish(Payment(item="coin"), correlation_id="one")
        await idle(boards[1])
        assert clerk.given == [["tea", "coin"]]
        await boards[1].publish(Order(item="milk"), correlation_id="two")
        await asyncio.gather(*map(idle, boards))
        assert batch.given == [["tea", "milk"]]
        assert len(await everything(boards[0])) == len(await everything(boards[1])) == 3


async def test_a_board_is_quiet(capfd: pytest.CaptureFixture[str], file: str) -> None:
    handlers, hook = [*logging.getLogger().handlers], sys.excepthook
    async with Loom(store=file) as app:
        board = declare(app, Clerk(pack))
        await board.publish(Order())
        await idle(board)
        await board.close()
    assert capfd.readouterr() == ("", "")
    assert (logging.getLogger().handlers, sys.excepthook) == (handlers, hook)
