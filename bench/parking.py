"""The cost of a run while it waits for a person."""

import asyncio
import gc
import tracemalloc
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from mmap import PAGESIZE
from multiprocessing import get_context
from pathlib import Path

from bench.measures import Measure, Size
from bench.workload import Stopwatch, write_wait
from turnloom import Loom

# More runs than an app caches, so that every cache is full before memory is measured; no more than
# are measured afterwards.
BEFORE = 300
LOOKS = 1000
TASK = "idle asyncio task"
STATM = Path("/proc/self/statm")


def measure(size: Size, root: Path) -> Iterator[Measure]:
    """Measure memory and tasks per waiting run, in a separate process."""
    with ProcessPoolExecutor(1, get_context("spawn")) as fresh:
        yield from fresh.submit(_measure_here, size.parked, root).result()


def _measure_here(count: int, root: Path) -> list[Measure]:
    return asyncio.run(_measure(count, root))


async def _measure(count: int, root: Path) -> list[Measure]:
    workflow, before = write_wait(root / "Wait"), min(BEFORE, count)
    async with Loom(store=str(root / "turnloom.db"), engine=Stopwatch(())) as app:
        await _park(app, workflow, before)
        tasks, resident = len(asyncio.all_tasks()), _resident()
        await _park(app, workflow, count)
        resident = (_resident() - resident) / count
        left = len(asyncio.all_tasks()) - tasks
        tracemalloc.start()
        await _park(app, workflow, before)
        held = _held()
        await _park(app, workflow, count // 4)
        held = (_held() - held) / (count // 4)
    task = await _idle_task(1000)
    return [
        # The store remembers the ends of up to ten thousand runs.
        Measure("parked", "Python memory per run", held, "bytes", TASK, held / task),
        Measure("parked", "process memory per run", resident, "bytes", TASK, resident / task),
        Measure(
            "parked", f"tasks of {count:,} runs", left, "tasks", "one per run", left / count, 0
        ),
    ]


async def _park(app: Loom, workflow: str, count: int) -> None:
    """Start runs and wait until every run of the store waits."""
    for _ in range(count):
        await app.start(workflow)
    for _ in range(LOOKS):
        if all(run.status == "waiting" for run in await app.runs()):
            return
        await asyncio.sleep(0.05)
    raise TimeoutError("Some runs did not park in time.")


async def _idle_task(count: int) -> float:
    """Bytes of a waiting task."""
    bell = asyncio.Event()
    before = _held()
    tasks = [asyncio.create_task(bell.wait()) for _ in range(count)]
    await asyncio.sleep(0)
    cost = (_held() - before) / count
    bell.set()
    await asyncio.gather(*tasks)
    return cost


def _held() -> int:
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


def _resident() -> int:
    """Resident bytes of this process, where the system reports them."""
    gc.collect()
    return int(STATM.read_text().split()[1]) * PAGESIZE if STATM.exists() else 0
