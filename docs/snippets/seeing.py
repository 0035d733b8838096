"""Visibility: a salary that one agent reads, and news that opens later."""

import asyncio
from datetime import UTC, datetime

from pydantic import BaseModel

from turnloom import After, Labelled, Loom, Private, Reader, Task, artifact_type


@artifact_type
class Salary(BaseModel):
    amount: int


@artifact_type
class News(BaseModel):
    text: str


async def pay(task: Task) -> News:
    return News(text=f"{task.agent} was shown {len(task.inputs)} salary.")


async def main() -> None:
    async with Loom(store="memory") as app:
        board = app.board()
        for name in ("payroll", "gossip"):
            board.agent(name).consumes(Salary).publishes(News).with_engines(pay)

        await board.publish(Salary(amount=4100), visibility=Private({"payroll"}))
        later = datetime(2100, 1, 1, tzinfo=UTC)
        embargo = After(later, Labelled({"press"}))
        await board.publish(News(text="We merge."), visibility=embargo)
        await board.run_until_idle()

        everybody, _ = await board.query_artifacts()
        print([each.payload for each in everybody])
        payroll = board.read_as(Reader("payroll"))
        print((await payroll.summary()).by_visibility)


asyncio.run(main())
