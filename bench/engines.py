"""Engines of model libraries: the cost of their turns compared with direct calls."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import aclosing
from importlib import import_module
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

from bench import model
from bench.baselines import TASK
from bench.measures import Measure, Rounds, Size, settle
from bench.workload import PATIENCE, PLAIN, write_talk
from turnloom import Answer, Engine, Loom, Task
from turnloom.wiring.adapters import adapter
from turnloom.wiring.models import ASKING

ALONE, ENGINE, CALLS, RUNS = "alone", "by the engine", "calls at once", "runs at once"

# Target for concurrent runs, as a ratio to concurrent calls of the library.
CROWD = 1.5


class Start:
    """An engine that holds all runs in their first turn; another engine answers afterwards."""

    def __init__(self, engine: Engine, runs: int) -> None:
        self._engine = engine
        self._missing = runs
        self.all_there = asyncio.Event()

    async def __call__(self, task: Task) -> Answer:
        if task.turn > 1:
            return await self._engine(task)
        self._missing -= 1
        if not self._missing:
            self.all_there.set()
        await self.all_there.wait()
        return PLAIN


def measure(size: Size, root: Path) -> Iterator[Measure]:
    """Per library: compare a call by its engine, and many concurrent runs, to direct calls."""
    libraries = import_module(
        "bench.libraries"
    )  # takes seconds, which other scenarios need not pay
    workflow = write_talk(root / "Talk", 2, 0)
    with model.running_server() as url:
        for kind, alone in libraries.ALONE.items():
            rounds = Rounds()
            for _ in range(size.call_rounds):
                settle()
                asyncio.run(_one_by_one(kind, alone, url, size.calls, rounds))
                settle()
                asyncio.run(_at_once(kind, alone, url, size.callers, workflow, rounds))
            many = f"{size.callers} "
            yield _compared(kind, rounds, ENGINE, ALONE)
            yield _compared(kind, rounds, RUNS, CALLS, many, CROWD)


def _compared(
    kind: str,
    rounds: Rounds,
    case: str,
    against: str,
    many: str = "",
    target: float | None = None,
) -> Measure:
    value, ratio = rounds.least(case) * 1e6, rounds.ratio(case, against)
    name = f"{kind}, {many}{case}"
    return Measure("engines", name, value, "µs/call", f"{many}{against}", ratio, target)


def _open_engine(kind: str, name: str, url: str) -> Any:
    """The engine of a library; the caller closes it."""
    return aclosing(getattr(adapter(kind), ASKING[kind])(name, base_url=url, keep_open=True))


async def _one_by_one(kind: str, alone: Any, url: str, calls: int, rounds: Rounds) -> None:
    """CPU seconds per call of a quick model: by the library, and by its engine."""
    async with alone(model.QUICK, url) as call:
        rounds.add(ALONE, await _spent(call, calls))
    async with _open_engine(kind, model.QUICK, url) as engine:
        rounds.add(ENGINE, await _spent(lambda: engine(TASK), calls))


async def _spent(call: Callable[[], Awaitable[object]], calls: int) -> float:
    await call()  # opens the connections that stay open
    begin = process_time()
    for _ in range(calls):
        await call()
    return (process_time() - begin) / calls


async def _at_once(
    kind: str, alone: Any, url: str, callers: int, workflow: str, rounds: Rounds
) -> None:
    """Seconds per call of concurrent calls of a slow model: by the library, and in runs."""
    async with alone(model.SLOW, url) as call:
        await call()
        begin = perf_counter()
        await asyncio.gather(*(call() for _ in range(callers)))
        rounds.add(CALLS, (perf_counter() - begin) / callers)
    async with _open_engine(kind, model.SLOW, url) as engine:
        await engine(TASK)
        rounds.add(RUNS, await _runs(Start(engine, callers), callers, workflow) / callers)


async def _runs(start: Start, callers: int, workflow: str) -> float:
    """Seconds from the first turn of all runs to the end of their second."""
    async with Loom(store="memory", engine=start, slots=callers) as app, asyncio.timeout(PATIENCE):
        runs = [await app.start(workflow) for _ in range(callers)]
        await start.all_there.wait()
        begin = perf_counter()
        for run in runs:
            await run.finished()
        return perf_counter() - begin
