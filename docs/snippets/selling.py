"""Deals published on a board, and a conversation that reads them."""

import asyncio

from pydantic import BaseModel

from turnloom import Loom, Tenant, artifact_type


@artifact_type
class PitchResult(BaseModel):
    tagline: str
    private_notes: str


@artifact_type
class Objection(BaseModel):
    text: str


async def main() -> None:
    async with Loom(store="memory") as app:
        board = app.board(app_id="acme")
        socks = PitchResult(tagline="Warm feet, warm heart", private_notes="Robin pays late.")
        await board.publish(socks, tags={"deal_won"})
        hats = PitchResult(tagline="Keep your head", private_notes="Not for others.")
        await board.publish(hats, tags={"deal_won"}, visibility=Tenant("globex"))
        await board.publish(Objection(text="Wool is dear."), tags={"price"})

        run = await app.start("docs/snippets/Sales", app_id="acme")
        async for event in run.events():
            if event.kind == "agent.text":
                print(event.data.text)


asyncio.run(main())
