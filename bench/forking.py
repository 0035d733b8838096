"""The time until a fork of a long run is stored."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from time import process_time

from bench.measures import Measure, Rounds, Size, settle
from bench.workload import Halt, write_talk
from turnloom import Loom

# The most that a fork of a long run may cost, as a multiple of one of a short run.
TARGET = 2


def measure(size: Size, root: Path) -> Iterator[Measure]:
    """Measure a fork at the end of a long run beside one of a short run: where the run is known
    already, and in a process that reads the ids of its events first."""
    rounds, runs = Rounds(), dict[int, tuple[str, str, int]]()
    for turns in size.forked:
        workflow = write_talk(root / f"Talk{turns}", turns + 1, 0)
        file = str(root / f"forks{turns}.db")
        runs[turns] = (file, *asyncio.run(_leave(file, workflow, turns)))
    for _ in range(size.rounds):
        for turns, (file, run, at) in runs.items():
            settle()
            for how, cost in zip(HOW, asyncio.run(_fork(file, run, at)), strict=True):
                rounds.add(_case(turns, how), cost)
    short, long = runs
    for how, target in HOW.items():
        case, against = _case(long, how), _case(short, how)
        value, ratio = rounds.least(case) * 1e3, rounds.ratio(case, against)
        yield Measure("fork", case, value, "ms", against, ratio, target)


# The targets of forks in a process that does not know the run, and in one that does.
HOW = {"cold": None, "warm": TARGET}


def _case(turns: int, how: str) -> str:
    return f"{turns:,} turns, {how}"


async def _leave(file: str, workflow: str, turns: int) -> tuple[str, int]:
    """Stop a run in the turn after `turns`; return its id and its last position."""
    watch = Halt((turns + 1,))
    async with Loom(store=file, engine=watch) as app:
        run = await app.start(workflow)
        await watch.done()
        [summary] = await app.runs()
        return run.id, summary.events


async def _fork(file: str, run: str, at: int) -> list[float]:
    """CPU seconds until each of two forks is stored; driving them comes after that."""
    async with Loom(store=file, engine=Halt((1,))) as app:
        handle = app.handle(run)
        await app.runs()
        costs: list[float] = []
        for _ in HOW:
            begin = process_time()
            fork = await handle.fork(at)
            costs.append(process_time() - begin)
            await fork.cancel()
        return costs
