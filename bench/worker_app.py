"""The app of the workers that are measured: a flow whose step sleeps, and one that waits."""

import asyncio
from typing import Any

from pydantic import BaseModel, ConfigDict

from turnloom import Flow, Loom

SECONDS = 0.02


class Nap(BaseModel):
    model_config = ConfigDict(frozen=True)

    seconds: float = SECONDS


async def nap(state: Nap, ctx: Any) -> dict[str, Any]:
    await asyncio.sleep(state.seconds)
    return {}


naps = Flow("naps", Nap).start_with(nap).finally_(lambda state: {}, name="end")
waits = (
    Flow("waits", Nap)
    .start_with(nap)
    .await_approval("May it end?")
    .finally_(lambda state: {}, name="end")
)

app = Loom()
for flow in (naps, waits):
    app.register_flow(flow)
