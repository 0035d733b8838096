"""The cost of each form: a step and a hop compared with a turn, and many runs with one."""

import asyncio
import gc
from collections.abc import Callable, Iterator
from pathlib import Path
from time import process_time
from typing import Any

from pydantic import BaseModel, ConfigDict

from bench.crowd import Race
from bench.hops import Course, Hops
from bench.measures import Measure, Rounds, Size, settle
from bench.workload import Stopwatch, write_talk
from turnloom import Flow, Loom
from turnloom.cli.entry import COLLECTOR

TURN = "a turn"
ASYNC, PLAIN = "a step (async def)", "a step (def)"
HOP = "a hop"
ALONE = "a run alone"
STEPS = 50

# Targets in turns for each form, and for a turn among many runs.
TARGETS = {ASYNC: 1.5, PLAIN: 3.0, HOP: 5.0}
CROWDED = 1.5


class Count(BaseModel):
    """The state of the flows."""

    model_config = ConfigDict(frozen=True)

    n: int = 0


async def one_more(state: Count, ctx: Any) -> dict[str, Any]:
    return {"n": state.n + 1}


def one_more_here(state: Count, ctx: Any) -> dict[str, Any]:
    return {"n": state.n + 1}


def measure(size: Size, root: Path) -> Iterator[Measure]:
    """Measure all forms in memory, in CPU time, in the same rounds."""
    rounds, crowd = Rounds(), f"{size.crowd:,} runs at once"
    threshold = gc.get_threshold()
    gc.set_threshold(*COLLECTOR)
    try:
        for number in range(size.rounds):
            asyncio.run(_round(rounds, size, root / str(number)))
            workflow = write_talk(root / f"Crowd{number}", size.crowd * size.crowd_turns, 0)
            for name, runs, turns in ((ALONE, 1, 10), (crowd, size.crowd, 1)):
                settle()
                rounds.add(name, asyncio.run(_race(workflow, runs, turns * size.crowd_turns)))
    finally:
        gc.set_threshold(*threshold)
    for case, target in TARGETS.items():
        yield _found(rounds, case, TURN, target)
    yield _found(rounds, crowd, ALONE, CROWDED)


def _found(rounds: Rounds, case: str, against: str, target: float) -> Measure:
    value = rounds.least(case) * 1e6
    return Measure("forms", case, value, "µs", against, rounds.ratio(case, against), target)


async def _round(rounds: Rounds, size: Size, root: Path) -> None:
    settle()
    rounds.add(TURN, await _turn(size.window, root))
    for case, step in ((ASYNC, one_more), (PLAIN, one_more_here)):
        settle()
        rounds.add(case, await _step(step, size.window // 5))
    settle()
    async with Hops(Course(1), "memory") as hops:
        await hops.burst(size.window // 5)
        settle()
        rounds.add(HOP, await hops.burst(size.window))


async def _turn(turns: int, root: Path) -> float:
    watch = Stopwatch((10, 10 + turns))
    async with Loom(store="memory", engine=watch) as app:
        await app.start(write_talk(root, 20 + turns, 0))
        await watch.done()
    return (watch.at[10 + turns] - watch.at[10]) / turns


async def _step(step: Callable[..., Any], runs: int) -> float:
    """CPU seconds per step of flows with many steps, each run to its outcome."""
    flow = Flow("count", Count).start_with(step, name="step0")
    for number in range(1, STEPS):
        flow = flow.then(step, name=f"step{number}")
    async with Loom(store="memory") as app:
        await app.run(flow, Count())
        begun = process_time()
        for _ in range(runs):
            outcome = await app.run(flow, Count())
            assert outcome.state.n == STEPS
        return (process_time() - begun) / (runs * STEPS)


async def _race(workflow: str, runs: int, turns: int) -> float:
    race = Race(runs, turns)
    async with Loom(store="memory", engine=race, slots=runs) as app:
        for _ in range(runs):
            await app.start(workflow)
        return await race.spent() / (runs * (turns - 1))
