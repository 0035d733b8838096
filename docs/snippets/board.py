"""Artifacts on a board: two deals, one of which is the business of one tenant."""

import asyncio
from datetime import UTC, datetime
from typing import Any

from pydantic import BaseModel

from weft.adapters.memory import MemoryStore
from weft.board.logic.matching import resolve_types
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
    wins = resolve_types(wins, types)
    for reader in (Reader("lead", tenant="acme"), Reader("lead", tenant="globex")):
        page = await store.artifacts.query(wins, reader, NOON, count=True)
        print(reader.tenant, [item.id for item in page.items], "of", page.total)
    await store.aclose()


asyncio.run(main())
