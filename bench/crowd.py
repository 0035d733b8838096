"""The cost of a turn among many concurrent runs on one loop."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from time import process_time

from bench.measures import Measure, Rounds, Size, settle
from bench.workload import PATIENCE, PLAIN, write_talk
from turnloom import Answer, Loom, Task

ROUNDS = 2


class Race:
    """An engine that holds all runs in their first turn until each has arrived, then measures."""

    def __init__(self, runs: int, turns: int) -> None:
        self._turns = turns
        self._missing = self._under_way = runs
        self._start, self._end = asyncio.Event(), asyncio.Event()
        self._spent = 0.0

    async def __call__(self, task: Task) -> Answer:
        if task.turn == 1:
            await self._line_up()
        elif task.turn == self._turns:
            self._arrive()
        return PLAIN

    async def _line_up(self) -> None:
        self._missing -= 1
        if not self._missing:
            self._spent = -process_time()
            self._start.set()
        await self._start.wait()

    def _arrive(self) -> None:
        self._under_way -= 1
        if not self._under_way:
            self._spent += process_time()
            self._end.set()

    async def spent(self) -> float:
        """CPU seconds from the arrival of the last run until the last run reached its last turn."""
        async with asyncio.timeout(PATIENCE):
            await self._end.wait()
        return self._spent


def measure(size: Size, root: Path) -> Iterator[Measure]:
    """Compare a turn among many runs in a SQLite file to a turn of a single run."""
    workflow = write_talk(root / "Talk", size.crowd * size.crowd_turns, 0)
    alone, together = "a run alone", f"{size.crowd:,} runs at once"
    rounds = Rounds()
    for number in range(ROUNDS):
        for name, runs, turns in ((alone, 1, 10), (together, size.crowd, 1)):
            settle()
            file = str(root / f"{runs}-{number}.db")
            cost = asyncio.run(_race(file, workflow, runs, turns * size.crowd_turns))
            rounds.add(name, cost)
    value, ratio = rounds.least(together) * 1e6, rounds.ratio(together, alone)
    yield Measure("crowd", together, value, "µs/turn", alone, ratio)


async def _race(file: str, workflow: str, runs: int, turns: int) -> float:
    """CPU seconds per turn."""
    race = Race(runs, turns)
    async with Loom(store=file, engine=race, slots=runs) as app:
        for _ in range(runs):
            await app.start(workflow)
        return await race.spent() / (runs * (turns - 1))
