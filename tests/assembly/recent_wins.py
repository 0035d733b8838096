"""The provider of the blueprint, as it stands there."""

from typing import Any

from turnloom import ContextRequest, ContextSlice, DefaultCorrelationProvider
from turnloom.board.spec import FilterConfig, TagFilter


class RecentWinsProvider:
    """Provide recent wins plus the active run, redacting private notes."""

    def __init__(self, max_wins: int = 3) -> None:
        self.max_wins = max_wins

    async def __call__(self, request: ContextRequest) -> ContextSlice:
        items: list[dict[str, Any]] = []

        # 1) Include the default correlation view (current cascade)
        correlation = await DefaultCorrelationProvider()(request)
        items.extend(correlation.items)

        # 2) Add last N wins from the whole board
        wins_filter = FilterConfig(
            types={"PitchResult"},
            tags=TagFilter(include={"deal_won"}),
            limit=self.max_wins,
            order="-created_at",
        )
        wins, _total = await request.board.query_artifacts(wins_filter, embed_meta=True)
        for envelope in wins:
            payload = dict(envelope.payload)
            payload.pop("private_notes", None)  # Redact internal notes
            items.append(
                {
                    "type": envelope.type,
                    "payload": payload,
                    "produced_by": envelope.produced_by,
                }
            )

        return ContextSlice(items=items)
