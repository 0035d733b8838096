"""The cost of a turn: in memory and in a file, with a long history, with many variables."""

import asyncio
from collections.abc import Iterator, Mapping
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

from bench import baselines
from bench.measures import Measure, Rounds, Size, settle
from bench.workload import FACTS, Followed, Stopwatch, fact_answer, write_talk
from turnloom import Answer, Loom

LOOP, RECORD, COMMIT = "bare loop", "loop + record", "loop + commit"
WHOLE, CHANGING, FOLLOWED = "the whole run", "changing values", "followed live"

# Targets for a turn after a hundred times the turns, and with a hundred times the variables.
GROWTH = 1.3


class Store(NamedTuple):
    """A store, the baseline for its turns, and the target."""

    name: str
    plain: str
    target: float


MEMORY = Store("memory", RECORD, 20)
SQLITE = Store("sqlite", COMMIT, 5)


class Course(NamedTuple):
    """A run, and the ranges of turns measured in it."""

    workflow: str
    stretches: Mapping[str, tuple[int, int]]
    answers: Mapping[int, Answer] = {}
    followed: bool = False


def in_memory(size: Size, root: Path) -> Iterator[Measure]:
    """Measure turns of runs in memory."""
    return _measure(MEMORY, size, root)


def in_sqlite(size: Size, root: Path) -> Iterator[Measure]:
    """Measure turns of runs in a SQLite file: one commit before each effect."""
    return _measure(SQLITE, size, root)


def _measure(store: Store, size: Size, root: Path) -> Iterator[Measure]:
    courses, rounds = _courses(size, root), Rounds()
    for number in range(size.rounds):
        _run_plain(rounds, size.plain_turns, root / f"plain{number}.db")
        place = "memory" if store is MEMORY else str(root / f"turnloom{number}.db")
        for course in courses:
            settle()
            for case, cost in asyncio.run(_run(course, place)).items():
                rounds.add(case, cost)
    return _findings(store, size, rounds)


def _findings(store: Store, size: Size, rounds: Rounds) -> Iterator[Measure]:
    def compare(case: str, against: str, target: float | None = None) -> Measure:
        value, ratio = rounds.least(case) * 1e6, rounds.ratio(case, against)
        return Measure(store.name, case, value, "µs/turn", against, ratio, target)

    histories = [_history(turns) for turns in size.histories]
    yield compare(store.plain, LOOP)
    for case in (*histories, WHOLE):
        yield compare(case, store.plain, store.target)
    for case in (CHANGING, FOLLOWED):
        yield compare(case, store.plain)
    for less, more in combinations(histories, 2):
        yield compare(more, less, GROWTH)
    for more in size.idle[1:]:
        yield compare(_idle(more), _idle(size.idle[0]), GROWTH)


def _courses(size: Size, root: Path) -> list[Course]:
    """A long run, runs with more variables, one with changing values, one with a follower."""
    begin, window = size.histories[0], size.window
    soon, last = (begin, begin + window), size.histories[-1] + window
    talks = {idle: write_talk(root / f"Talk{idle}", last, idle) for idle in size.idle}
    talk = talks[size.idle[0]]
    long = {_history(turns): (turns, turns + window) for turns in size.histories}
    settled = {begin + n * window // FACTS: fact_answer(n) for n in range(FACTS)}
    return [
        Course(talk, long | {WHOLE: (begin, last)}),
        *(Course(each, {_idle(idle): soon}) for idle, each in talks.items()),
        Course(talk, {CHANGING: soon}, settled),
        Course(talk, {FOLLOWED: soon}, followed=True),
    ]


def _history(turns: int) -> str:
    return f"after {turns:,} turns"


def _idle(count: int) -> str:
    return f"{count:,} idle variables"


def _run_plain(rounds: Rounds, turns: int, file: Path) -> None:
    settle()
    rounds.add(LOOP, asyncio.run(baselines.loop(turns)))
    rounds.add(RECORD, asyncio.run(baselines.loop_with_record(turns)))
    rounds.add(COMMIT, asyncio.run(baselines.loop_with_commit(turns, file)))


async def _run(course: Course, place: str) -> dict[str, float]:
    """CPU seconds per turn in each range."""
    stretches = course.stretches
    turns = {turn for ends in stretches.values() for turn in ends}
    watch = Followed(turns) if course.followed else Stopwatch(turns, course.answers)
    async with Loom(store=place, engine=watch) as app:
        run = await app.start(course.workflow)
        reader = asyncio.create_task(watch.follow(run))
        await watch.done()
        reader.cancel()
    spent = {case: watch.at[end] - watch.at[begin] for case, (begin, end) in stretches.items()}
    return {case: spent[case] / (end - begin) for case, (begin, end) in stretches.items()}
