"""A turn in which two engines are asked; the process may die while the second one is."""

import os
import signal
from pathlib import Path
from typing import Literal

from pydantic import BaseModel

from turnloom import Answer, Board, Loom, Task, ToolCall, artifact_type


@artifact_type(name="durable.Order")
class Order(BaseModel):
    text: str


def declare(app: Loom, notes: Path, *, dies: bool) -> Board:
    """A board whose agent calls a tool and is asked again, by two engines."""

    def note(what: str) -> None:
        with notes.open("a") as file:
            file.write(f"{what}\n")

    async def first(task: Task) -> Answer:
        note("first")
        return Answer("A draft.")

    async def second(task: Task) -> Answer:
        if not any(exchange.calls for exchange in task.exchanges):
            note("second")
            if dies and "tool" not in notes.name:
                os.kill(os.getpid(), signal.SIGKILL)
            return Answer(calls=(ToolCall("file", {}),))
        note("third")
        if dies:
            os.kill(os.getpid(), signal.SIGKILL)
        return Answer("Done.")

    def file() -> str:
        """File it."""
        note("tool")
        return "filed"

    board = app.board()
    board.agent("clerk").consumes(Order).with_engines(first, second).with_tools(file)
    return board


async def main(store: str, notes: Path, durability: Literal["effect", "turn"]) -> None:
    """Let the turn be taken, and die in it."""
    async with Loom(store=store, durability=durability) as app:
        board = declare(app, notes, dies=True)
        await board.publish(Order(text="x"))
        await board.run_until_idle()
