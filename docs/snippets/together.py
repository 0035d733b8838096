"""Wait for several artifacts: two of one meeting, two of one order, two parcels for a van."""

import asyncio
from datetime import timedelta

from pydantic import BaseModel

from turnloom import Batch, Join, Loom, Task, artifact_type


@artifact_type
class Order(BaseModel):
    number: int


@artifact_type
class Payment(BaseModel):
    order: int


@artifact_type
class Parcel(BaseModel):
    number: int


@artifact_type
class Agenda(BaseModel):
    topic: str


@artifact_type
class Minutes(BaseModel):
    text: str


async def file(task: Task) -> None:
    print("file", [each.payload for each in task.inputs])


async def pack(task: Task) -> Parcel:
    order, payment = task.inputs
    print("pack", order.payload["number"], order.correlation_id == payment.correlation_id)
    return Parcel(number=order.payload["number"])


async def load(task: Task) -> None:
    print("load", [each.payload["number"] for each in task.inputs])


def number_of(value: Order | Payment) -> int:
    return value.number if isinstance(value, Order) else value.order


async def main() -> None:
    async with Loom(store="memory") as app:
        board = app.board()
        board.agent("clerk").consumes(Agenda, Minutes).with_engines(file)
        (
            board.agent("packer")
            .consumes(Order, Payment, join=Join(by=number_of, within=timedelta(days=3)))
            .publishes(Parcel)
            .with_engines(pack)
        )
        board.agent("loader").consumes(Parcel, batch=Batch(2)).with_engines(load)

        for topic in ("rent", "roof"):
            await board.publish(Agenda(topic=topic), correlation_id=f"meeting about {topic}")
        await board.publish(Minutes(text="No."), correlation_id="meeting about roof")
        await board.run_until_idle()

        for number in (1, 2, 3):
            await board.publish(Order(number=number))
            await board.publish(Payment(order=number))
            await board.run_until_idle()
        print("closing")
        await board.close()


asyncio.run(main())
