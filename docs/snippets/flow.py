"""A flow: a typed state passes through steps."""

import asyncio
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict

from turnloom import Flow, Loom, Path, StepContext, append


class Parcel(BaseModel):
    model_config = ConfigDict(frozen=True)

    kilos: float
    kind: str = ""
    tries: int = 0
    notes: Annotated[list[str], append] = []


async def weigh(parcel: Parcel, ctx: StepContext) -> dict[str, Any]:
    return {"kind": "heavy" if parcel.kilos > 20 else "light", "notes": ["weighed"]}


def by_lorry(parcel: Parcel, ctx: StepContext) -> dict[str, Any]:
    return {"notes": ["on the lorry"]}


def by_bike(parcel: Parcel, ctx: StepContext) -> dict[str, Any]:
    return {"notes": ["on the bike"]}


async def ring(parcel: Parcel, ctx: StepContext) -> dict[str, Any]:
    return {"tries": parcel.tries + 1, "notes": [f"rang, attempt {parcel.tries + 1}"]}


async def hand_over(parcel: Parcel, ctx: StepContext) -> dict[str, Any]:
    return {"notes": ["handed over"]}


DELIVERY = (
    Flow("delivery", Parcel)
    .start_with(weigh)
    .branch(lambda parcel: parcel.kind, {"heavy": by_lorry}, otherwise=by_bike)
    .repeat_until(lambda parcel: parcel.tries == 2, Path(ring), max_iterations=5, name="door")
    .finally_(hand_over)
)


async def main() -> None:
    async with Loom() as app:
        outcome = await app.run(DELIVERY, Parcel(kilos=31))
        print(outcome.status, outcome.state.kind)
        print(*outcome.state.notes, sep=", ")


if __name__ == "__main__":
    asyncio.run(main())
