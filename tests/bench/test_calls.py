"""How many functions a turn and a hop enter: a cost that can be counted on a busy machine."""

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import turnloom
from bench.hops import Course, Hops
from bench.workload import PLAIN, write_talk
from turnloom import Answer, Loom, Task

PACKAGE = str(Path(turnloom.__file__).parent)
WARM, COUNTED = 10, 10

# Raise these only for what a turn or a hop does more than before, and say so.
# A turn hears messages while its engine answers, and asks its claim before each effect.
TURN, HOP = 320, 1075


class CallCount:
    """Counts the calls of the package's functions; each resumption of a coroutine is one."""

    def __init__(self) -> None:
        self.calls = 0

    def note(self, frame: FrameType, event: str, _: Any) -> None:
        self.calls += event == "call" and frame.f_code.co_filename.startswith(PACKAGE)


@contextmanager
def counting() -> Iterator[CallCount]:
    count, before = CallCount(), sys.getprofile()
    sys.setprofile(count.note)
    try:
        yield count
    finally:
        sys.setprofile(before)


class CountedEngine:
    """Answers at once, and notes the calls so far at each turn."""

    def __init__(self, count: CallCount) -> None:
        self.at: dict[int, int] = {}
        self.done = asyncio.Event()
        self._count = count

    async def __call__(self, task: Task) -> Answer:
        self.at[task.turn] = self._count.calls
        if task.turn == WARM + COUNTED:
            self.done.set()
        return PLAIN


async def test_a_turn_enters_few_functions(tmp_path: Path) -> None:
    with counting() as count:
        engine = CountedEngine(count)
        async with Loom(store="memory", engine=engine) as app:
            await app.start(write_talk(tmp_path / "Talk", WARM + COUNTED, 0))
            await engine.done.wait()
    assert (engine.at[WARM + COUNTED] - engine.at[WARM]) / COUNTED <= TURN


async def test_a_hop_enters_few_functions() -> None:
    async with Hops(Course(1), "memory") as hops:
        with counting() as count:
            await hops.burst(COUNTED)
    assert count.calls / COUNTED <= HOP
