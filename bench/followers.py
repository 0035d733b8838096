"""The cost of a turn while many followers read the run in its process."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from time import process_time

from bench.measures import Measure, Rounds, Size, settle
from bench.workload import PATIENCE, PLAIN, write_talk
from turnloom import Answer, Loom, Run, Task
from turnloom.events import RunEnd

ROUNDS = 2

# Target for a followed run: a follower costs a few microseconds per turn.
MOST = 10.0


async def _answer(task: Task) -> Answer:
    return PLAIN


def measure(size: Size, root: Path) -> Iterator[Measure]:
    """Compare a turn in a SQLite file with many followers to one without."""
    turns, followers = size.followed
    workflow = write_talk(root / "Talk", turns, 0)
    alone, watched = "a run alone", f"a run with {followers:,} followers"
    rounds = Rounds()
    for number in range(ROUNDS):
        for name, count in ((alone, 0), (watched, followers)):
            settle()
            file = str(root / f"{count}-{number}.db")
            rounds.add(name, asyncio.run(_spent(file, workflow, count)) / turns)
    value, ratio = rounds.least(watched) * 1e6, rounds.ratio(watched, alone)
    yield Measure("followers", watched, value, "µs/turn", alone, ratio, MOST)


async def _spent(file: str, workflow: str, followers: int) -> float:
    """CPU seconds of a run, including its followers."""
    async with asyncio.timeout(PATIENCE), Loom(store=file, engine=_answer) as app:
        spent = -process_time()
        run = await app.start(workflow)
        following = [asyncio.create_task(_follow(run)) for _ in range(followers + 1)]
        await asyncio.gather(*following)
        return spent + process_time()


async def _follow(run: Run) -> RunEnd:
    return await run.finished()
