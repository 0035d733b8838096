"""The time to replay runs, against the time that they took."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from time import process_time

from bench.measures import Measure, Size, settle
from bench.workload import PLAIN, write_talk
from turnloom import Answer, Loom, Task

# Turns of each replayed run.
TURNS = 10


def measure(size: Size, root: Path) -> Iterator[Measure]:
    """Drive runs of ten turns, and replay them; 1,000 of them may take a minute."""
    settle()
    driven, replayed = asyncio.run(_replay(write_talk(root / "Talk", TURNS, 0), size.crowd))
    case = f"{size.crowd:,} runs of {TURNS} turns"
    per_turn = replayed / (size.crowd * TURNS)
    yield Measure("replay", case, per_turn * 1e6, "µs a turn", "driven", replayed / driven)


async def _replay(workflow: str, runs: int) -> tuple[float, float]:
    """CPU seconds to drive runs, and to replay them."""
    async with Loom(store="memory", engine=_answer) as app:
        begin = process_time()
        ids = [(await (await app.start(workflow)).finished()).run for _ in range(runs)]
        driven, begin = process_time() - begin, process_time()
        for run in ids:
            replay = await app.history.replay(run)
            assert replay.divergence is None, replay
    return driven, process_time() - begin


async def _answer(task: Task) -> Answer:
    return PLAIN
