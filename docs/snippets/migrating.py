"""A flow that continues runs with a new model of the state."""

import asyncio
from typing import Any

from pydantic import BaseModel, ConfigDict

from turnloom import Flow, Loom


class Old(BaseModel):
    model_config = ConfigDict(frozen=True)

    kilos: int = 2


class Parcel(BaseModel):
    model_config = ConfigDict(frozen=True)

    weight: int


async def send(parcel: Any) -> None:
    print("send", parcel)


def migrate(old: dict[str, Any]) -> dict[str, Any]:
    return {"weight": old["kilos"] * 1000}


async def main() -> None:
    before = Flow("post", Old).start_with(send).await_approval("boss").finally_(send, name="again")
    async with Loom() as app:
        run_id = (await app.run(before)).run_id
    today = Flow("post", Parcel, migrate=migrate).start_with(send).await_approval("boss")
    async with Loom() as app:
        app.register_flow(today.finally_(send, name="again"))
        run = await app.resume(run_id)
        await run.answer(None, "approve", user_id="boss")
        await run.outcome()


asyncio.run(main())
