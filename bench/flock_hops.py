"""The hops of `hops.py` in Flock, as a program for a Python with `flock-core`.

Arguments: the store (`memory` or a file), hops per publish, hops per round, and rounds. It prints
the lowest CPU seconds per hop last.
"""

import asyncio
import sys
from importlib import import_module
from time import process_time
from typing import Any

from pydantic import BaseModel, create_model

try:
    flock: Any = import_module("flock")
    components: Any = import_module("flock.components")
    orchestrator: Any = import_module("flock.orchestrator")
    runtime: Any = import_module("flock.runtime")
    stores: Any = import_module("flock.store")
except ImportError:
    sys.exit(3)

TOGETHER = 50
LONGEST = 10


def quiet(*_: object, **__: object) -> None:
    """Replace Flock's banner and screen handling."""


class Silent(components.AgentComponent):
    """Replaces the component that prints every artifact."""


class Relay(components.EngineComponent):
    """Reads its context, as our agents do, and answers with the next stage."""

    stage: int

    async def evaluate(self, agent: Any, ctx: Any, inputs: Any) -> Any:
        await self.fetch_conversation_context(ctx)
        return runtime.EvalResult.from_object(STAGES[self.stage](), agent=agent)


STAGES: list[type[BaseModel]] = [
    flock.flock_type(create_model(f"Stage{n}", text=(str, "x" * 64))) for n in range(LONGEST + 1)
]


async def burst(board: Any, hops: int, count: int) -> float:
    begin = process_time()
    for first in range(0, count, TOGETHER):
        for _ in range(first, min(count, first + TOGETHER)):
            await board.publish(STAGES[0]())
    await board.run_until_idle()
    return (process_time() - begin) / (count * hops)


async def main(place: str, hops: int, window: int, rounds: int) -> None:
    orchestrator.init_console = quiet
    store = None if place == "memory" else stores.SQLiteBlackboardStore(place)
    if store is not None:
        await store.ensure_schema()
    board = flock.Flock(store=store, max_agent_iterations=10**9)
    for n in range(hops):
        builder = board.agent(f"agent{n}").consumes(STAGES[n]).publishes(STAGES[n + 1])
        builder.with_utilities(Silent()).with_engines(Relay(stage=n + 1))
    count = max(1, window // hops)
    await burst(board, hops, 1)
    print(min([await burst(board, hops, count) for _ in range(rounds)]))
    if store is not None:
        await store.close()  # its thread would keep the program alive


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], *map(int, sys.argv[2:])))
