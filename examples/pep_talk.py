"""A pep talk for every pitch: an agent sees the deals that were won, without their notes.

A custom provider combines the artifacts of the pitch with the last wins of the whole board. The log
has the origin of each item and its redactions.

Run it from any folder, repeatedly: python examples/pep_talk.py
"""

import asyncio
import json
from typing import Any

from pydantic import BaseModel

from turnloom import (
    Answer,
    Board,
    ContextRequest,
    ContextSlice,
    DefaultCorrelationProvider,
    FilterConfig,
    Loom,
    Publication,
    TagFilter,
    Task,
    artifact_type,
)


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


@artifact_type
class Pitch(BaseModel):
    product: str
    audience: str
    highlight: str


@artifact_type
class PitchResult(BaseModel):
    tagline: str
    closer: str
    private_notes: str | None = None


WINS = {
    "win-socks": PitchResult(
        tagline="Socks that stay up.",
        closer="Try them for a week.",
        private_notes="Margin is 61 %; do not go below 9.",
    ),
    "win-kettle": PitchResult(
        tagline="Tea before the kettle boils over.",
        closer="The first box is on us.",
        private_notes="Their buyer is leaving in March.",
    ),
    "win-lamp": PitchResult(tagline="A lamp that dims with you.", closer="Sign by Friday."),
}


class HypeEngine:
    """Answer without a model: borrow the closer of the last win in the context."""

    def __init__(self) -> None:
        self.asked: list[Task] = []

    async def __call__(self, task: Task) -> Answer:
        self.asked.append(task)
        pitch = task.inputs[0].payload
        closers = [item["payload"]["closer"] for item in task.context.items]
        tagline = f"{pitch['product']}: {pitch['highlight']}!"
        return Answer(artifacts=(Publication(PitchResult(tagline=tagline, closer=closers[0])),))


async def remember(board: Board) -> None:
    """Publish the deals that were won; existing ones stay unchanged."""
    for id, win in WINS.items():
        await board.publish(win, tags={"deal_won"}, id=id)


async def main() -> None:
    """Publish a pitch, and print what the agent saw."""
    engine = HypeEngine()
    async with Loom() as app:
        board = app.board()

        (
            board.agent("pep_talk_lead")
            .description("Adds a hype meter to every pitch.")
            .consumes(Pitch)
            .publishes(PitchResult)
            .with_context(RecentWinsProvider(max_wins=5))
            .with_engines(engine)
        )

        await remember(board)
        pitch = await board.publish(
            Pitch(product="Umbrella", audience="commuters", highlight="it never turns inside out")
        )
        await board.run_until_idle()

        print("What the engine saw:")
        for item in engine.asked[0].context.items:
            print(f"  {json.dumps(item, ensure_ascii=False)}")
        made, _ = await board.query_artifacts(FilterConfig(correlation_id=pitch.correlation_id))
        print(f"\nThe pep talk:\n  {made[-1].payload['tagline']} {made[-1].payload['closer']}")
        print(f"\n{await app.explain.turn(str(pitch.run), 1)}")


if __name__ == "__main__":
    asyncio.run(main())
