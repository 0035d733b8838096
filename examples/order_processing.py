"""Orders that succeed, and one that fails: its completed steps are undone, in reverse.

Stock is reserved while the card is checked, then the card is charged and the parcel is sent. The
bank loses the first connection; it is called again with the same key, and no customer pays twice.
No courier serves the island, so the payment is refunded and the stock released. The log has what
was done, what failed, and what compensated it.

Run it from any folder, repeatedly: python examples/order_processing.py
"""

import asyncio
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict

from turnloom import Flow, Loom, Path, Retry, StepContext, append

STOCK = {"kettle": 3, "lamp": 1}
PRICES = {"kettle": 40, "lamp": 25}


class NoCourier(Exception):
    """No courier serves the address."""


class Order(BaseModel):
    model_config = ConfigDict(frozen=True)

    item: str
    address: str
    reserved: bool = False
    risk: str = ""
    receipt: str = ""
    parcel: str = ""
    diary: Annotated[list[str], append] = []


class Bank:
    """A bank that makes every payment, and loses the connection of its first call."""

    def __init__(self) -> None:
        self.payments: dict[str, int] = {}
        self.calls = 0

    def charge(self, key: str, amount: int) -> str:
        """Return the receipt of a payment; the same key is the same payment."""
        self.calls += 1
        known = key in self.payments
        self.payments[key] = amount
        if not known:
            raise ConnectionError("the line to the bank is gone")
        return f"receipt for {amount}"


BANK = Bank()


async def take(order: Order, ctx: StepContext) -> dict[str, Any]:
    return {"diary": [f"took the order of a {order.item}"]}


async def reserve(order: Order, ctx: StepContext) -> dict[str, Any]:
    STOCK[order.item] -= 1
    return {"reserved": True, "diary": [f"reserved a {order.item}"]}


async def release(order: Order, ctx: StepContext) -> dict[str, Any]:
    STOCK[order.item] += 1
    return {"reserved": False, "diary": [f"released the {order.item}"]}


async def check_card(order: Order, ctx: StepContext) -> dict[str, Any]:
    return {"risk": "low", "diary": ["checked the card"]}


async def confirm(order: Order, ctx: StepContext) -> dict[str, Any]:
    ended = ", ".join(f"{path.name} {path.status}" for path in ctx.paths)
    return {"diary": [f"confirmed: {ended}"]}


async def charge(order: Order, ctx: StepContext) -> dict[str, Any]:
    receipt = BANK.charge(ctx.idempotency_key, PRICES[order.item])
    return {"receipt": receipt, "diary": [f"charged in attempt {ctx.attempt}: {receipt}"]}


async def refund(order: Order, ctx: StepContext) -> dict[str, Any]:
    return {"receipt": "", "diary": [f"gave back the {order.receipt}"]}


async def ship(order: Order, ctx: StepContext) -> dict[str, Any]:
    if "island" in order.address:
        raise NoCourier(f"nobody goes to {order.address}")
    return {"parcel": f"parcel to {order.address}", "diary": [f"sent to {order.address}"]}


async def apologise(order: Order, ctx: StepContext) -> dict[str, Any]:
    return {"diary": [f"apologised: {ctx.failure.message if ctx.failure else ''}"]}


async def close(order: Order, ctx: StepContext) -> dict[str, Any]:
    return {"diary": ["told the clerk to close the order"]}


async def thank(order: Order, ctx: StepContext) -> dict[str, Any]:
    return {"diary": ["thanked the customer"]}


ORDERS = (
    Flow("orders", Order)
    .start_with(take, validate=(lambda order: order.item in STOCK, "we do not sell that"))
    .fork(Path().then(reserve, compensate=release), check_card, join=confirm)
    .then(charge, retry=Retry(2, delay=0.1, jitter=False), timeout=5, compensate=refund)
    .then(ship, on_failure={NoCourier: [apologise]})
    .on_failure([close])
    .finally_(thank)
)


async def main() -> None:
    """Place two orders, and print their outcomes."""
    async with Loom() as app:
        for order in (
            Order(item="kettle", address="Mill Lane 3"),
            Order(item="lamp", address="Lighthouse island"),
        ):
            run = await app.start(ORDERS, order)
            outcome = await run.outcome()
            print(f"{order.item} to {order.address}: {outcome.status}")
            for line in outcome.state.diary:
                print(f"  {line}")
        print(f"in stock: {STOCK}; the bank was called {BANK.calls} times")
        print(f"\n{await app.explain.timeline(outcome.run_id)}")


if __name__ == "__main__":
    asyncio.run(main())
