"""A board that two programs declare.

`drive` is a program that publishes on the board, whose clerk never answers there. It says when it
drives the run, and closes when it is told to.
"""

import asyncio
import sys
from typing import Any

from pydantic import BaseModel

from turnloom import Answer, Board, Loom, artifact_type


@artifact_type(name="Order")
class Order(BaseModel):
    """What wakes the clerk."""

    item: str


@artifact_type(name="Receipt")
class Receipt(BaseModel):
    """What the clerk makes."""

    item: str


class Clerk:
    """Answers, unless it `hangs`."""

    def __init__(self, *, hangs: bool = False) -> None:
        self._hangs = hangs

    async def __call__(self, task: Any) -> Answer:
        if self._hangs:
            print("driving", flush=True)
            await asyncio.get_running_loop().create_future()
        return Answer(artifacts=(Receipt(item="tea"),))


def desk(app: Loom, clerk: Clerk) -> Board:
    """The board with its clerk."""
    board = app.board("desk")
    board.agent("clerk").consumes(Order).publishes(Receipt).with_engines(clerk)
    return board


async def drive(file: str) -> None:
    """Publish, and close once there is a line on standard input."""
    async with Loom(store=file) as app:
        await desk(app, Clerk(hangs=True)).publish(Order(item="tea"), correlation_id="c1")
        await asyncio.to_thread(sys.stdin.readline)
