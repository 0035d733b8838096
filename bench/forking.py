"""The time until a fork of a long run is stored."""

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import process_time

from bench.measures import Measure, Rounds, Size, settle
from bench.workload import Halt, write_talk
from turnloom import Loom, Run

# The most that a fork of a long run may cost, as a multiple of one of a short run.
TARGET = 2


def measure(size: Size, root: Path) -> Iterator[Measure]:
    """Measure a fork at the end of a long run beside one of a short run: in a process that does not
    know the run, and in the one that drove it."""
    rounds, runs = Rounds(), dict[int, tuple[str, str, int]]()
    for turns in size.forked:
        workflow = write_talk(root / f"Talk{turns}", turns + 1, 0)
        file = str(root / f"forks{turns}.db")
        run, at, costs = asyncio.run(_leave(file, workflow, turns, size.rounds))
        runs[turns] = (file, run, at)
        for cost in costs:
            rounds.add(_case(turns, "warm"), cost)
    for _ in range(size.rounds):
        for turns, (file, run, at) in runs.items():
            settle()
            rounds.add(_case(turns, "cold"), asyncio.run(_fork_once(file, run, at)))
    short, long = runs
    for how in ("cold", "warm"):
        case, against = _case(long, how), _case(short, how)
        value, ratio = rounds.least(case) * 1e3, rounds.ratio(case, against)
        yield Measure("fork", case, value, "ms", against, ratio, TARGET)


def _case(turns: int, how: str) -> str:
    return f"{turns:,} turns, {how}"


async def _leave(
    file: str, workflow: str, turns: int, rounds: int
) -> tuple[str, int, Sequence[float]]:
    """Stop a run in the turn after `turns`, and fork it; return its id, its last position, and what
    the forks cost."""
    watch = Halt((turns + 1,))
    async with Loom(store=file, engine=watch) as app:
        run = await app.start(workflow)
        await watch.done()
        [summary] = await app.runs()
        costs = [await _cost(run, summary.events) for _ in range(rounds)]
        return run.id, summary.events, costs


async def _fork_once(file: str, run: str, at: int) -> float:
    """What the first fork in a process costs."""
    async with Loom(store=file, engine=Halt((1,))) as app:
        await app.runs()
        return await _cost(app.handle(run), at)


async def _cost(run: Run, at: int) -> float:
    """CPU seconds until a fork is stored; driving it comes after that."""
    begin = process_time()
    fork = await run.fork(at)
    cost = process_time() - begin
    await fork.cancel()
    return cost
