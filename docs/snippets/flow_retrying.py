"""A run that failed is retried: what was compensated is done anew, the rest stands."""

import asyncio
from typing import Any

from pydantic import BaseModel, ConfigDict

from turnloom import Flow, Loom, StepContext

CARD = {"valid": False}


class Order(BaseModel):
    model_config = ConfigDict(frozen=True)

    room: str = ""
    paid: bool = False


async def check_in(order: Order) -> None:
    print("check in")


async def book(order: Order, ctx: StepContext) -> dict[str, Any]:
    print("book", ctx.idempotency_key.partition("/")[2])
    return {"room": "12"}


async def free(order: Order, ctx: StepContext) -> dict[str, Any]:
    assert ctx.undoes is not None
    print("free", ctx.undoes.idempotency_key.partition("/")[2])
    return {"room": ""}


async def pay(order: Order) -> dict[str, Any]:
    if not CARD["valid"]:
        raise PermissionError("the card is refused")
    return {"paid": True}


STAY = Flow("stay", Order).start_with(check_in).then(book, compensate=free).finally_(pay)


async def main() -> None:
    async with Loom(store="memory") as app:
        run = await app.start(STAY, Order())
        print((await run.outcome()).status)
        CARD["valid"] = True
        await run.retry()
        outcome = await run.outcome()
        print(outcome.status, outcome.state)


asyncio.run(main())
