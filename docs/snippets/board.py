"""Artifacts on a board: two deals, one of them visible to one tenant only."""

import asyncio

from pydantic import BaseModel

from turnloom import FilterConfig, Loom, Reader, Shared, TagFilter, artifact_type


@artifact_type(name="deals.PitchResult")
class PitchResult(BaseModel):
    tagline: str


async def main() -> None:
    wins = FilterConfig(
        types={"PitchResult"},
        tags=TagFilter(include={"deal_won"}),
        limit=3,
        order="-created_at",
    )
    async with Loom(store="memory") as app:
        deals = app.board("deals", app_id="acme")
        socks, hats = PitchResult(tagline="Warm feet"), PitchResult(tagline="Dry heads")
        await deals.publish(socks, tags={"deal_won"}, id="socks", visibility=Shared())
        await deals.publish(hats, tags={"deal_won"}, id="hats")

        for tenant in ("acme", "globex"):
            board = deals.read_as(Reader("lead", tenant=tenant))
            items, total = await board.query_artifacts(wins, count=True)
            counted = await board.summary()
            print(tenant, [item.id for item in items], "of", total, counted.by_visibility)

        async for item in deals.iter_artifacts(FilterConfig(types={"PitchResult"})):
            print(item.id, item.payload["tagline"])


asyncio.run(main())
