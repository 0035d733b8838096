"""A board that makes pieces of parts and plans, and packs them."""

from typing import Any

from pydantic import BaseModel

from turnloom.agents.spec import Task
from turnloom.app import Board
from turnloom.board.spec import artifact_type
from turnloom.reaction.spec import Batch


@artifact_type(name="Part")
class Part(BaseModel):
    n: int


@artifact_type(name="Plan")
class Plan(BaseModel):
    n: int


@artifact_type(name="Piece")
class Piece(BaseModel):
    n: int


@artifact_type(name="Crate")
class Crate(BaseModel):
    of: list[int]


async def polish(task: Task) -> Any:
    return ""


async def assemble(task: Task) -> Any:
    part, plan = task.inputs
    assert part.payload == plan.payload
    return Piece(**part.payload)


async def pack(task: Task) -> Any:
    return Crate(of=[each.payload["n"] for each in task.inputs])


def declare(board: Board, size: int = 3) -> None:
    """One agent for each part, one for a part and its plan, one for so many pieces of all."""
    board.agent("polish").consumes(Part).with_engines(polish)
    board.agent("assemble").consumes(Part, Plan).publishes(Piece).with_engines(assemble)
    board.agent("pack").consumes(Piece, batch=Batch(size)).publishes(Crate).with_engines(pack)


async def put(board: Board, n: int) -> None:
    """Publish a part and its plan, if they are not published."""
    await board.publish(Part(n=n), correlation_id=f"c{n}", id=f"part{n}")
    await board.publish(Plan(n=n), correlation_id=f"c{n}", id=f"plan{n}")
