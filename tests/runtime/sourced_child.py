"""A process with a run on a file whose agents have sources. Run as: sourced_child.py FILE DEED.

It hangs where `HANG_IN` says, has no tokenizer if `NO_TOKENIZER` says so, and context has as much
room as `ROOM` says.
"""

import asyncio
import os
import sys
import time
from pathlib import Path
from typing import Any

if os.environ.get("NO_TOKENIZER"):
    nothing: Any = None
    sys.modules["splintr"] = nothing  # as if it were not installed

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

ROOM = int(os.environ.get("ROOM", "60"))

# A tokenizer finds many tokens in these, and the estimate few.
NUMBERS = "7 1 4 9 2 6 3 5 8 0 " * 5

FOLDER = {
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
            budget: {{max_tokens: {ROOM}}}
        """,
    "providers.py": "from tests.runtime.sourced_child import archive",
}


class Manual(RagCollection):
    name = "manual"


def hang_in(place: str, said: str = "") -> None:
    """Say something and be stuck until killed, if this is the place."""
    if os.environ.get("HANG_IN") == place:
        print(f"{said}\nhangs", flush=True)
        time.sleep(60)


async def archive(request: ContextRequest) -> ContextSlice:
    hang_in("provider")
    return ContextSlice([{"type": "Win", "payload": {"item": "lamp"}}])


async def clerk(task: Task) -> Answer:
    print(as_data(task.prompt), flush=True)
    hang_in("engine")
    return Answer("Packed.")


async def converse(app: Loom, where: Path) -> None:
    """Begin a conversation, or go on with it."""
    known = await app.runs()
    if known:
        await app.resume(known[0].run)
        run = app.run(known[0].run)
    else:
        run = await app.start(write_folder(where, FOLDER), user_id="u1")
    await run.finished()


async def react(app: Loom, where: Path) -> None:
    """Publish two orders, one after the other, as far as they are not."""
    board = app.board()
    agent = board.agent("clerk").consumes(Order).with_engines(clerk)
    agent.with_sources(
        from_provider(archive),
        from_retrieval(Manual, "{item}", priority=2),
        from_literal(NUMBERS),
        budget=Budget(ROOM),
    )
    await board.resume()
    for id in ("o1", "o2"):
        await board.publish(Order(), id=id, correlation_id="all")
        await board.run_until_idle(20)


async def explanations(app: Loom) -> list[TurnExplained]:
    """What is said of each turn of each run, in order."""
    found: list[Any] = []
    for summary in reversed(await app.runs()):
        frames = every(await app.log(summary.run), "frame.assembled")
        found += [await app.explain(summary.run, turn=each.turn) for each in frames]
    return found


async def main(file: str, deed: str) -> None:
    search = InMemorySearch()
    search.seed(RetrievalResult("Tea is packed dry.", 0.9, "tea.md"))
    async with Loom(store=file, engine=clerk) as app:
        app.register(Manual, search)
        await globals()[deed](app, Path(file).parent)
        print(*await explanations(app), sep="\n")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
