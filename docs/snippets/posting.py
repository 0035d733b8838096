"""A board to explain: a parcel is weighed, and leaves once it is paid."""

import asyncio

from pydantic import BaseModel

from turnloom import DefaultCorrelationProvider, Loom, RedactingProvider, Task, artifact_type


@artifact_type(name="post.Parcel")
class Parcel(BaseModel):
    grams: int
    sender: str
    abroad: bool = False


@artifact_type(name="post.Price")
class Price(BaseModel):
    cents: int


async def weigh(task: Task) -> Price:
    return Price(cents=task.inputs[0].payload["grams"] // 10)


async def load(task: Task) -> str:
    return "Loaded."


async def main() -> None:
    async with Loom() as app:
        board = app.board("post")
        nameless = RedactingProvider(DefaultCorrelationProvider(), keys=["sender"])
        (
            board.agent("scales")
            .description("Weigh the parcel, and say what it costs.")
            .consumes(Parcel)
            .publishes(Price)
            .with_context(nameless)
            .with_engines(weigh)
        )
        board.agent("customs").consumes(Parcel, where=lambda it: it.abroad).with_engines(load)
        board.agent("van").consumes(Parcel, Price).with_engines(load)
        await board.publish(Parcel(grams=900, sender="Ada"), id="parcel-1")
        await board.run_until_idle()


asyncio.run(main())
