"""Context providers, called in a turn on a board with a few deals."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

from turnloom import (
    CompositeProvider,
    ContextRequest,
    ContextSlice,
    DefaultCorrelationProvider,
    FilteredContextProvider,
    RedactingProvider,
    SummaryProvider,
)
from turnloom.assembly.spec import ChosenProvider
from turnloom.board.spec import Artifact, FilterConfig, Private, Reader, TagFilter
from turnloom.testing import BoardTurn

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


def made(id: str, minute: int, **more: Any) -> Artifact:
    """An artifact by the closer, some minutes after noon."""
    at = NOON + timedelta(minutes=minute)
    return Artifact(id=id, created_at=at, produced_by="closer", **more)


def won(id: str, minute: int, **more: Any) -> Artifact:
    payload = {"tagline": f"On {id}", "customer": {"name": "Robin", "email": "r@example.org"}}
    return made(id, minute, type="PitchResult", payload=payload, tags={"deal_won"}, **more)


pitch = made("pitch", 9, type="Pitch", payload={"product": "scarves"}, correlation_id="scarves")
turn = BoardTurn(
    artifacts=[
        won("socks", 1),
        won("hats", 2),
        won("gloves", 3, visibility=Private({"boss"})),
        made("draft", 8, type="Pitch", payload={"product": "scarf"}, correlation_id="scarves"),
        pitch,
    ],
    reader=Reader("lead"),
    inputs=(pitch,),
    correlation_id="scarves",
    now=NOON + timedelta(hours=1),
)

wins = FilterConfig(types={"PitchResult"}, tags=TagFilter(include={"deal_won"}))
context = RedactingProvider(
    CompositeProvider(DefaultCorrelationProvider(), FilteredContextProvider(wins, limit=3)),
    keys=["**.email"],
)


class RecentWins:
    """The last deals that were won, without the customers."""

    def __init__(self, most: int) -> None:
        self.most = most

    async def __call__(self, request: ContextRequest) -> ContextSlice:
        newest = wins.model_copy(update={"limit": self.most, "order": "-created_at"})
        found, _ = await request.board.query_artifacts(newest)
        items: list[dict[str, Any]] = []
        for each in found:
            payload = {"tagline": each.payload["tagline"]}
            items.append({"type": each.type, "payload": payload, "produced_by": each.produced_by})
        return ContextSlice(items=items, metadata={"most": self.most})


def in_short(item: dict[str, Any]) -> str:
    return f"{item['type']}: {item['payload'].get('tagline', '…')}"


async def broken(request: ContextRequest) -> ContextSlice:
    raise ConnectionError("the archive is closed")


async def main() -> None:
    for title, provider in (
        ("redacted", context),
        ("our own", RecentWins(1)),
        ("in short", SummaryProvider(context, in_short)),
        ("fallback", ChosenProvider(broken, fallback=RecentWins(1))),
    ):
        gathered = await turn.gather(provider)
        print(title)
        for item in gathered.items:
            print(f"  {item.artifact}, by {item.provider}, without {list(item.redacted)}")
        for failed in gathered.failures:
            print(f"  {failed.provider} failed ({failed.message}): {failed.fallback} was asked")


asyncio.run(main())
