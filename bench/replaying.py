"""The time to replay and to backtest runs, against the time that they took."""

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
    """Drive runs of ten turns, replay and backtest them; 1,000 of them may take a minute."""
    settle()
    workflow = write_talk(root / "Talk", TURNS, 0)
    driven, replayed, tested = asyncio.run(_replay(workflow, size.crowd))
    case = f"{size.crowd:,} runs of {TURNS} turns"
    for done, took in (("replayed", replayed), ("backtested", tested)):
        per_turn = took / (size.crowd * TURNS) * 1e6
        yield Measure("replay", f"{case}, {done}", per_turn, "µs a turn", "driven", took / driven)


async def _replay(workflow: str, runs: int) -> tuple[float, float, float]:
    """CPU seconds to drive runs, to replay and to backtest them."""
    async with Loom(store="memory", engine=_answer) as app:
        begin = process_time()
        ids = [(await (await app.start(workflow)).finished()).run for _ in range(runs)]
        driven, begin = process_time() - begin, process_time()
        for run in ids:
            replay = await app.history.replay(run)
            assert replay.divergence is None, replay
        replayed, begin = process_time() - begin, process_time()
        backtest = await app.history.backtest(workflow, last=runs)
        assert len(backtest.runs) == runs and not any(each.differs for each in backtest.runs)
    return driven, replayed, process_time() - begin


async def _answer(task: Task) -> Answer:
    return PLAIN
