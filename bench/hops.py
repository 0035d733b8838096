"""The cost of a hop on a board: an agent takes an artifact and publishes the next."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

from pydantic import BaseModel, create_model

from bench.board import artifacts
from bench.measures import Measure, Rounds, Size, settle
from bench.workload import PATIENCE, Stopwatch, write_talk
from turnloom import Board, Loom, Task, artifact_type

# A Python with Flock, measured for comparison; it is not installed here.
NEIGHBOUR = "TURNLOOM_BENCH_FLOCK"
FLOCK = Path(__file__).with_name("flock_hops.py")
MISSING = 3

# Targets for a hop on a full board, and among agents that do not subscribe to it.
GROWTH = 1.3
TURN, SINGLE, CHAIN = "a turn of a talk", "1 hop a publish", "10 hops a publish"
LENGTHS = {SINGLE: 1, CHAIN: 10}
TOGETHER = 50
TEXT = "x" * 64

STAGES: list[type[BaseModel]] = [
    artifact_type(name=f"bench.Stage{n}")(create_model(f"Stage{n}", text=(str, TEXT)))
    for n in range(max(LENGTHS.values()) + 1)
]
ELSEWHERE: type[BaseModel] = artifact_type(name="bench.Elsewhere")(create_model("Elsewhere"))


class Course(NamedTuple):
    """The hops per publish, the number of idle agents, and the artifacts on the board."""

    hops: int
    idle: int = 0
    full: int = 0


def measure(size: Size, root: Path) -> Iterator[Measure]:
    """Compare hops in memory and in a SQLite file to turns of a conversation in the same store."""
    for store in ("memory", "sqlite"):
        (root / store).mkdir()
        rounds = asyncio.run(_take_rounds(store, size, root / store))
        yield from _findings(store, size, rounds)
        yield from _beside(store, size, root / store, rounds)


async def _take_rounds(store: str, size: Size, root: Path) -> Rounds:
    rounds, courses = Rounds(), _courses(size)
    async with AsyncExitStack() as stack:
        boards = {
            case: await stack.enter_async_context(Hops(course, _place(store, root, case)))
            for case, course in courses.items()
        }
        for number in range(size.rounds):
            settle()
            place = _place(store, root, f"talk{number}")
            rounds.add(TURN, await _take_turns(place, root / f"Talk{number}", size.window))
            for case, opened in boards.items():
                settle()
                rounds.add(case, await opened.burst(size.window))
    return rounds


def _courses(size: Size) -> dict[str, Course]:
    """The cases by name."""
    return {
        **{case: Course(hops) for case, hops in LENGTHS.items()},
        **{_crowd(idle): Course(1, idle=idle) for idle in size.bystanders},
        **{_board(full): Course(1, full=full) for full in size.shelves},
    }


def _findings(store: str, size: Size, rounds: Rounds) -> Iterator[Measure]:
    def compare(case: str, against: str, target: float | None = None) -> Measure:
        value, ratio = rounds.least(case) * 1e6, rounds.ratio(case, against)
        return Measure("hops", f"{store}: {case}", value, "µs/hop", against, ratio, target)

    for case in LENGTHS:
        yield compare(case, TURN)
    none, *crowds = size.bystanders
    for idle in crowds:
        yield compare(_crowd(idle), _crowd(none), GROWTH)
    empty, full = size.shelves
    yield compare(_board(full), _board(empty), GROWTH)


def _beside(store: str, size: Size, root: Path, rounds: Rounds) -> Iterator[Measure]:
    """The same hops in Flock, if a Python with Flock is configured."""
    for case, hops in LENGTHS.items():
        place = "memory" if store == "memory" else str(root / f"flock{hops}.db")
        cost = _ask_flock(place, hops, size)
        if cost is None:
            note = f"hops: flock-core is not installed ({NEIGHBOUR} names a Python that has it)"
            print(note, file=sys.stderr)
            return
        ours = rounds.least(case)
        against = f"Flock: {cost * 1e6:,.0f}"
        yield Measure("hops", f"{store}: {case}", ours * 1e6, "µs/hop", against, ours / cost)


def _ask_flock(place: str, hops: int, size: Size) -> float | None:
    """CPU seconds per hop in Flock with its output disabled; None if it is not installed."""
    done = subprocess.run(
        [os.environ.get(NEIGHBOUR, sys.executable), "-P", str(FLOCK)]
        + [place, str(hops), str(size.window), str(min(3, size.rounds))],
        env={**os.environ, "FLOCK_AUTO_TRACE": "false"},
        stdout=subprocess.PIPE,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    if done.returncode == MISSING:
        return None
    done.check_returncode()
    return float(done.stdout.splitlines()[-1])


def _place(store: str, root: Path, case: str) -> str:
    return store if store == "memory" else str(root / f"{case}.db")


def _crowd(idle: int) -> str:
    return f"{idle:,} idle agents"


def _board(full: int) -> str:
    return f"on {full:,} artifacts"


async def _take_turns(place: str, folder: Path, window: int) -> float:
    """CPU seconds per turn of a conversation after warm-up."""
    watch = Stopwatch((10, 10 + window))
    async with Loom(store=place, engine=watch) as app:
        await app.start(write_talk(folder, 10 + window, 0))
        await watch.done()
    return (watch.at[10 + window] - watch.at[10]) / window


class Hops:
    """An app whose board sends every publish through a chain of agents."""

    def __init__(self, course: Course, place: str) -> None:
        self._course = course
        self._app = Loom(store=place)
        self._board: Board = self._app.board()

    async def __aenter__(self) -> "Hops":
        await self._app.__aenter__()
        for n in range(self._course.hops):
            agent = self._board.agent(f"agent{n}").description("Passes it on.")
            agent.consumes(STAGES[n]).publishes(STAGES[n + 1]).with_engines(_Relay(n + 1))
        for n in range(self._course.idle):
            self._board.agent(f"idle{n}").consumes(ELSEWHERE).with_engines(_Relay(0))
        for some in artifacts(self._course.full):
            await self._app._open().artifacts.put("local", some)  # artifacts without a run
        await self.burst(TOGETHER)
        return self

    async def __aexit__(self, *error: Any) -> None:
        await self._app.aclose()

    async def burst(self, hops: int) -> float:
        """CPU seconds per hop; publishes as often as `hops` requires."""
        count = max(1, hops // self._course.hops)
        begin = process_time()
        for first in range(0, count, TOGETHER):
            some = [STAGES[0]() for _ in range(first, min(count, first + TOGETHER))]
            await self._board.publish_many(some)
        await self._board.run_until_idle(PATIENCE)
        return (process_time() - begin) / (count * self._course.hops)


class _Relay:
    """Answers at once with the next stage."""

    def __init__(self, stage: int) -> None:
        self._stage = stage

    async def __call__(self, task: Task) -> BaseModel:
        return STAGES[self._stage]()
