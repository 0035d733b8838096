"""The steps after a failure, in order."""

import asyncio
from typing import Any

from pydantic import BaseModel, ConfigDict

from turnloom import Flow, FlowFailed, Loom, StepContext


class Booking(BaseModel):
    model_config = ConfigDict(frozen=True)

    guest: str


def says(word: str) -> Any:
    """A step that prints its name."""

    async def step(booking: Booking, ctx: StepContext) -> None:
        print(word, f"(after {ctx.failure.step} failed)" if ctx.failure else "")

    step.__name__ = word
    return step


async def pay(booking: Booking, ctx: StepContext) -> None:
    print("pay, attempt", ctx.attempt)
    raise PermissionError(f"the card of {booking.guest} is refused")


STAY = (
    Flow("stay", Booking)
    .start_with(says("hold_room"), compensate=says("free_room"))
    .then(says("order_breakfast"), compensate=says("cancel_breakfast"))
    .then(
        pay,
        retry=1,
        compensate=says("void_payment"),
        on_failure={PermissionError: says("call_guest")},
    )
    .on_failure(says("tell_desk"))
    .finally_(says("send_key"))
)


async def main() -> None:
    async with Loom(store="memory") as app:
        try:
            await app.run(STAY, Booking(guest="Ada"))
        except FlowFailed as failed:
            failure = failed.outcome.failure
            assert failure is not None
            print(f"{failed.outcome.status}: {failure.step}: {failure.error}: {failure.message}")


asyncio.run(main())
