"""A compensation knows which execution it undoes."""

import asyncio
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict

from turnloom import Flow, FlowFailed, Loom, Path, StepContext, append


class Trip(BaseModel):
    model_config = ConfigDict(frozen=True)

    seat: str = ""
    booked: Annotated[list[str], append] = []


async def book(trip: Trip, ctx: StepContext) -> dict[str, Any]:
    return {"seat": f"seat {len(trip.booked) + 1}", "booked": [ctx.idempotency_key]}


async def give_back(trip: Trip, ctx: StepContext) -> None:
    assert ctx.undoes is not None and ctx.undoes.result is not None
    is_own = [ctx.undoes.idempotency_key] == ctx.undoes.result["booked"]
    print("give back", ctx.undoes.result["seat"], "of", trip.seat, is_own)


async def leave(trip: Trip) -> None:
    raise TimeoutError("the train is gone")


TRIP = (
    Flow("trip", Trip)
    .start_with(lambda trip: None, name="plan")
    .repeat_until(
        lambda trip: len(trip.booked) == 3,
        Path().then(book, compensate=give_back),
    )
    .finally_(leave)
)


async def main() -> None:
    async with Loom(store="memory") as app:
        try:
            await app.run(TRIP)
        except FlowFailed:
            return


asyncio.run(main())
