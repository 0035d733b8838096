"""A run of a board that ended goes on: turns that failed or were cut off are taken again."""

from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from turnloom import Board, Guards, Loom, RunBudget, artifact_type
from turnloom.log.logic import standing

done: Counter[str] = Counter()
stones: set[str] = set()


@artifact_type(name="again.Order")
class Order(BaseModel):
    n: int


@artifact_type(name="again.Parcel")
class Parcel(BaseModel):
    n: int


@artifact_type(name="again.Bill")
class Bill(BaseModel):
    n: int


def stumble(name: str) -> None:
    """Fail, if there is a stone here."""
    if name in stones:
        raise RuntimeError(f"stumbled at {name}")
    done[name] += 1


async def pack(task: Any) -> Parcel:
    stumble("pack")
    return Parcel(n=1)


async def bill(task: Any) -> Bill:
    stumble("bill")
    return Bill(n=1)


@pytest.fixture(autouse=True)
def _clean() -> None:
    done.clear()
    stones.clear()


@pytest.fixture(params=["memory", "board.db"])
async def loom(request: Any, tmp_path: Path) -> AsyncIterator[Loom]:
    where = request.param if request.param == "memory" else str(tmp_path / request.param)
    async with Loom(store=where) as app:
        yield app


def shop(loom: Loom, guards: Guards | None = None) -> Board:
    board = loom.board("shop", guards=guards)
    board.agent("packer").consumes(Order).publishes(Parcel).with_engines(pack)
    board.agent("clerk").consumes(Parcel).publishes(Bill).with_engines(bill)
    return board


async def run_of(loom: Loom, board: Board) -> str:
    await board.publish(Order(n=1))
    await board.run_until_idle(raise_errors=False)
    (run,) = await loom.runs()
    return run.run


async def types(board: Board) -> list[str]:
    return sorted([each.type async for each in board.iter_artifacts(embed_meta=True)])


@pytest.mark.parametrize("stone", ["pack", "bill"])
async def test_a_failed_turn_is_taken_again(loom: Loom, stone: str) -> None:
    board = shop(loom)
    stones.add(stone)
    run = await run_of(loom, board)
    stones.clear()
    await loom.handle(run).retry()
    assert (await loom.handle(run).finished()).kind == "run.finished"
    assert done == {"pack": 1, "bill": 1}
    assert await types(board) == ["again.Bill", "again.Order", "again.Parcel"]
    turns = [e.data for e in standing(await loom.history.events(run)) if e.kind == "turn.finished"]
    assert [turn.status for turn in turns] == ["done", "done"]


async def test_a_raised_budget(loom: Loom) -> None:
    board = shop(loom, Guards(budget=RunBudget(model_calls=1)))
    run = await run_of(loom, board)
    assert (await loom.handle(run).finished()).kind == "run.failed"
    assert done == {"pack": 1}
    await loom.handle(run).retry(budget={"model_calls": 5})
    assert (await loom.handle(run).finished()).kind == "run.finished"
    assert done == {"pack": 1, "bill": 1}


async def test_everything_since_a_turn(loom: Loom) -> None:
    board = shop(loom)
    run = await run_of(loom, board)
    await loom.handle(run).retry(2)
    assert (await loom.handle(run).finished()).kind == "run.finished"
    assert done == {"pack": 1, "bill": 2}
    assert (await types(board)).count("again.Bill") == 2
