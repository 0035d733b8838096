"""An app of flows and boards whose effects write down their keys."""

from typing import Any

from pydantic import BaseModel, ConfigDict

from tests.workers.effects import perform
from turnloom import Answer, Flow, Loom, Publication, Task, artifact_type


class Order(BaseModel):
    model_config = ConfigDict(frozen=True)

    number: int = 0
    done: list[str] = []


async def pack(order: Order, ctx: Any) -> dict[str, Any]:
    box = await ctx.once("box", lambda: perform(f"{ctx.idempotency_key}/box"))
    label = await ctx.once("label", lambda: perform(f"{ctx.idempotency_key}/label"))
    return {"done": [*order.done, box, label]}


async def pay(order: Order, ctx: Any) -> dict[str, Any]:
    return {"done": [*order.done, await perform(ctx.idempotency_key)]}


async def ship(order: Order, ctx: Any) -> dict[str, Any]:
    return {"done": [*order.done, await perform(ctx.idempotency_key)]}


orders = Flow("orders", Order).start_with(pack).then(pay).finally_(ship)


@artifact_type
class Ticket(BaseModel):
    number: int


@artifact_type
class Reply(BaseModel):
    number: int
    text: str


@artifact_type
class Receipt(BaseModel):
    number: int
    text: str


async def reply(task: Task) -> Answer:
    number = task.inputs[0].payload["number"]
    return Answer(artifacts=(Publication(Reply(number=number, text=await perform(task.key))),))


async def receipt(task: Task) -> Answer:
    number = task.inputs[0].payload["number"]
    return Answer(artifacts=(Publication(Receipt(number=number, text=await perform(task.key))),))


def declare(loom: Loom) -> Any:
    """The flow and the board, declared in an app."""
    loom.register_flow(orders)
    board = loom.board("desk")
    board.agent("clerk").description("Replies.").consumes(Ticket).publishes(Reply).with_engines(
        reply
    )
    board.agent("cashier").description("Writes receipts.").consumes(Reply).publishes(
        Receipt
    ).with_engines(receipt).max_concurrency(2)
    return board


app = Loom()
board = declare(app)
