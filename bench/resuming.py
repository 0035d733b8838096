"""The time until a long run resumes in another process."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from time import process_time

from bench import baselines
from bench.measures import Measure, Rounds, Size, settle
from bench.workload import Halt, write_talk
from turnloom import Loom


def measure(size: Size, root: Path) -> Iterator[Measure]:
    """Measure from a fresh app to the next model call, after a kill in mid-turn."""
    for turns in size.resumed:
        workflow = write_talk(root / f"Talk{turns}", turns + 1, 0)
        file = str(root / f"turnloom{turns}.db")
        run, events = asyncio.run(_leave(file, workflow, turns))
        case, plain = f"{turns:,} turns, cold", f"{events:,} records read"
        rounds = Rounds()
        for number in range(size.rounds):
            settle()
            rounds.add(plain, baselines.read_back(events, root / f"plain{turns}-{number}.db"))
            rounds.add(case, asyncio.run(_resume(file, run, turns)))
        yield Measure(
            "resume", case, rounds.least(case) * 1e3, "ms", plain, rounds.ratio(case, plain)
        )


async def _leave(file: str, workflow: str, turns: int) -> tuple[str, int]:
    """Stop a run in the turn after `turns`; return its id and its number of events."""
    watch = Halt((turns + 1,))
    async with Loom(store=file, engine=watch) as app:
        run = await app.start(workflow)
        await watch.done()
        [summary] = await app.runs()
        return run.id, summary.events


async def _resume(file: str, run: str, turns: int) -> float:
    """CPU seconds until the interrupted turn calls the model again."""
    watch = Halt((turns + 1,))
    begin = process_time()
    async with Loom(store=file, engine=watch) as app:
        await app.resume(run)
        await watch.done()
    return watch.at[turns + 1] - begin
