"""Context from sources: rules and search results, within a budget."""

import asyncio

from pydantic import BaseModel

from turnloom import (
    Budget,
    Document,
    Loom,
    RagCollection,
    Task,
    artifact_type,
    from_literal,
    from_retrieval,
    from_state,
)


class Handbook(RagCollection):
    name = "handbook"


@artifact_type
class Question(BaseModel):
    text: str
    asked_by: str


async def answer(task: Task) -> None:
    print(task.transcript[0].text)


DOCUMENTS = [
    Document("leave", "Everybody has thirty days of vacation each year."),
    Document("parental", "Parents have leave of up to three years. " * 9),
    Document("travel", "Trains are booked in second class."),
]


async def main() -> None:
    async with Loom(store="memory", vectors="memory") as app:
        board = app.board()
        (
            board.agent("desk")
            .consumes(Question)
            .with_sources(
                from_literal("Answer from the passages alone.", priority=9),
                from_state("asked_by", title="Asked by", priority=2),
                from_retrieval(Handbook, "{text}", top_k=2, min_relevance=0.2, priority=1),
                budget=Budget(40),
            )
            .with_engines(answer)
        )
        await app.collection(Handbook).add(DOCUMENTS)
        asked = await board.publish(Question(text="How many days of vacation?", asked_by="Ada"))
        await board.run_until_idle()

        turn = await app.explain.turn(str(asked.run), 1)
        print(*(line for line in str(turn).splitlines() if "  context[" in line), sep="\n")


asyncio.run(main())
