"""Tools, variables and hooks of a board: a clerk who finds tables."""

import asyncio
from typing import Any

from pydantic import BaseModel

from turnloom import Answer, Context, Loom, Task, ToolCall, artifact_type


@artifact_type
class Request(BaseModel):
    guests: int


@artifact_type
class Booking(BaseModel):
    table: int


def find_table(guests: int, context_variables: Context) -> int:
    """The number of a table for so many guests."""
    context_variables["found"] = True
    return 4 if guests <= 2 else 9


def send_receipt(context_variables: Context) -> None:
    print(f"{context_variables['house']}: a table was found")


VARIABLES: dict[str, Any] = {
    "definitions": {
        "house": {"type": "string", "source": {"type": "static", "value": "Harbour Inn"}},
        "found": {"type": "boolean", "source": {"type": "derived", "default": False}},
    },
    "agents": {"clerk": {"variables": ["house"]}},
}
HOOKS = [
    {
        "trigger": "after_agent",
        "agent": "clerk",
        "function": send_receipt,
        "when": "${found} == True",
    }
]


async def book(task: Task) -> Answer | Booking:
    if not task.exchanges:
        print(task.system)
        guests = task.inputs[0].payload["guests"]
        return Answer(calls=(ToolCall("find_table", {"guests": guests}),))
    return Booking(table=task.exchanges[0].results[0].value)


async def main() -> None:
    async with Loom(store="memory") as app:
        board = app.board(variables=VARIABLES, hooks=HOOKS)
        (
            board.agent("clerk")
            .description("Finds tables.")
            .consumes(Request)
            .publishes(Booking)
            .with_tools(find_table)
            .with_engines(book)
        )
        (booking,) = await board.invoke("clerk", Request(guests=6))
        print(booking.payload)


asyncio.run(main())
