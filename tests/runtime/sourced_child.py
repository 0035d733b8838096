"""Programs with runs on files whose agents have sources."""

import asyncio
from pathlib import Path
from typing import Any

from tests.reaction.scenes import Order
from tests.support.folders import write_folder
from tests.support.plays import every
from turnloom import (
    Answer,
    Budget,
    Loom,
    RagCollection,
    RetrievalResult,
    Task,
    from_literal,
    from_provider,
    from_retrieval,
)
from turnloom.assembly.spec import ContextRequest, ContextSlice
from turnloom.explain.spec.turn import TurnExplained
from turnloom.kernel.values import as_data
from turnloom.testing import InMemorySearch

# A tokenizer finds many tokens in these, and the estimate few.
NUMBERS = "7 1 4 9 2 6 3 5 8 0 " * 5


def folder(room: int) -> dict[str, str]:
    """A conversation with so much room for context."""
    return {
        "orchestrator.yaml": (
            "initial_message: Well?\norchestration_pattern: RoundRobinPattern\nmax_turns: 2"
        ),
        "agents.yaml": f"""
        Clerk:
          system_message: Pack.
          context:
            sources:
            - provider: archive
            - retrieval: {{collection: manual, query: tea}}
              priority: 2
            - literal: {NUMBERS}
            budget: {{max_tokens: {room}}}
        """,
        "providers.py": "from tests.runtime.sourced_child import archive",
    }


class Manual(RagCollection):
    name = "manual"


class Place:
    """Where a program stops for good, and whether it has come there."""

    def __init__(self) -> None:
        self.name = ""
        self.reached = asyncio.Event()

    async def stop_at(self, name: str) -> None:
        """Stay here, if this is the place."""
        if self.name == name:
            self.reached.set()
            await asyncio.Event().wait()


stops = Place()


async def archive(request: ContextRequest) -> ContextSlice:
    await stops.stop_at("provider")
    return ContextSlice([{"type": "Win", "payload": {"item": "lamp"}}])


class Clerk:
    """An engine that keeps what it is told."""

    def __init__(self) -> None:
        self.prompts: list[str] = []

    async def __call__(self, task: Task) -> Answer:
        self.prompts.append(task.prompt)
        await stops.stop_at("engine")
        return Answer("Packed.")


async def converse(app: Loom, where: Path, room: int, engine: Clerk) -> None:
    """Begin a conversation, or go on with it."""
    known = await app.runs()
    if known:
        run = await app.resume(known[0].run)
    else:
        run = await app.start(write_folder(where, folder(room)), user_id="u1")
    await run.finished()


async def react(app: Loom, where: Path, room: int, engine: Clerk) -> None:
    """Publish two orders, one after the other, as far as they are not."""
    board = app.board()
    agent = board.agent("clerk").consumes(Order).with_engines(engine)
    agent.with_sources(
        from_provider(archive),
        from_retrieval(Manual, "{item}", priority=2),
        from_literal(NUMBERS),
        budget=Budget(room),
    )
    await board.resume()
    for id in ("o1", "o2"):
        await board.publish(Order(), id=id, correlation_id="all")
        await board.run_until_idle(60)


DEEDS = {"converse": converse, "react": react}


async def explanations(app: Loom) -> list[TurnExplained]:
    """What is said of each turn of each run, in order."""
    found: list[Any] = []
    for summary in reversed(await app.runs()):
        frames = every(await app.history.events(summary.run), "frame.assembled")
        found += [await app.explain.turn(summary.run, each.turn) for each in frames]
    return found


async def act(where: Path, room: int, deed: str, engine: Clerk) -> str:
    """Do something to its end; what is said of it."""
    search = InMemorySearch()
    search.seed(RetrievalResult("Tea is packed dry.", 0.9, "tea.md"))
    async with Loom(store=str(where / f"{deed}.db"), engine=engine) as app:
        app.register_collection(Manual, search)
        await DEEDS[deed](app, where, room, engine)
        return "\n".join(map(str, await explanations(app)))


async def main(where: str, room: str, *deeds: str) -> None:
    """Do some things to their end, and tell of each."""
    for deed in deeds:
        engine = Clerk()
        said = await act(Path(where), int(room), deed, engine)
        print(as_data({"deed": deed, "prompts": engine.prompts, "said": said}), flush=True)
