"""Artifacts on a board: two deals, one of which is the business of one tenant."""

import asyncio
from datetime import UTC, datetime
from typing import Any

from pydantic import BaseModel

from weft.adapters.memory import MemoryStore
from weft.board.service import bind
from weft.board.spec import (
    Artifact,
    FilterConfig,
    Reader,
    TagFilter,
    Tenant,
    TypeRegistry,
    artifact_type,
)
from weft.runtime.logic import codec

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


@artifact_type(name="deals.PitchResult")
class PitchResult(BaseModel):
    tagline: str


async def main() -> None:
    types = TypeRegistry()
    types.register(PitchResult)
    name, payload = types.write(PitchResult(tagline="Warm feet"))
    shared: dict[str, Any] = {
        "type": name,
        "produced_by": "closer",
        "created_at": NOON,
        "tags": {"deal_won"},
    }

    store = MemoryStore(codec())
    await store.artifacts.put(
        [
            Artifact(id="socks", payload=payload, **shared),
            Artifact(id="hats", payload={"tagline": "…"}, visibility=Tenant("acme"), **shared),
        ]
    )
    wins = FilterConfig(
        types={"PitchResult"},
        tags=TagFilter(include={"deal_won"}),
        limit=3,
        order="-created_at",
    )
    for tenant in ("acme", "globex"):
        board = bind(store.artifacts, types, Reader("lead", tenant=tenant), lambda: NOON)
        items, total = await board.query_artifacts(wins, count=True)
        counted = await board.summary()
        print(tenant, [item.id for item in items], "of", total, counted.by_visibility)
    await store.aclose()


asyncio.run(main())
