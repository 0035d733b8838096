"""Context for agents: the run, the last wins of the whole board, and no phone numbers."""

import asyncio

from pydantic import BaseModel

from turnloom import (
    CompositeProvider,
    DefaultCorrelationProvider,
    FilterConfig,
    FilteredContextProvider,
    Loom,
    RedactingProvider,
    TagFilter,
    Task,
    artifact_type,
)


@artifact_type
class Lead(BaseModel):
    name: str
    phone: str


@artifact_type
class Offer(BaseModel):
    text: str


async def write(task: Task) -> Offer:
    print(task.agent, task.inputs[0].payload, [item["payload"] for item in task.context.items])
    return Offer(text=f"Dear {task.inputs[0].payload['name']}")


async def main() -> None:
    wins = FilterConfig(types={"Offer"}, tags=TagFilter(include={"won"}))
    provider = RedactingProvider(
        CompositeProvider(DefaultCorrelationProvider(), FilteredContextProvider(wins, limit=2)),
        keys=["**.phone"],
    )
    async with Loom(store="memory") as app:
        board = app.board()
        (
            board.agent("writer")
            .consumes(Lead)
            .publishes(Offer)
            .with_context(provider, fallback=DefaultCorrelationProvider())
            .with_engines(write)
        )
        for name in ("Ada", "Bob", "Cleo"):
            await board.publish(Offer(text=f"Dear {name}"), tags={"won"})
        await board.publish(Lead(name="Dan", phone="555-0134"))
        await board.run_until_idle()


asyncio.run(main())
