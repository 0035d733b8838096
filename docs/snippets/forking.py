"""Paths that run concurrently, and a step that joins them."""

import asyncio
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict

from turnloom import Flow, Loom, Path, StepContext, merge


class Trip(BaseModel):
    model_config = ConfigDict(frozen=True)

    to: str
    offers: Annotated[dict[str, int], merge] = {}
    best: str = ""


async def plan(trip: Trip, ctx: StepContext) -> None:
    """Nothing to do yet."""


async def ask_train(trip: Trip, ctx: StepContext) -> dict[str, Any]:
    return {"offers": {"train": 49}}


async def ask_ferry(trip: Trip, ctx: StepContext) -> dict[str, Any]:
    raise ConnectionError("the ferry does not answer")


async def without_ferry(trip: Trip, ctx: StepContext) -> dict[str, Any]:
    return {"offers": {"bus to the bridge": 19}}


async def choose(trip: Trip, ctx: StepContext) -> dict[str, Any]:
    for path in ctx.paths:
        print(path.name, path.status, path.failure.message if path.failure else "")
    return {"best": min(trip.offers, key=trip.offers.__getitem__)}


TRIP = (
    Flow("trip", Trip)
    .start_with(plan)
    .fork(ask_train, Path(ask_ferry).on_failure(without_ferry), join=choose, name="offers")
)


async def main() -> None:
    async with Loom(store="memory") as app:
        outcome = await app.run(TRIP, Trip(to="Bergen"))
        print(outcome.state.offers, "→", outcome.state.best)


asyncio.run(main())
