"""Measures, the sizes of scenarios, and repeated rounds."""

import gc
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec


class Measure(msgspec.Struct, frozen=True):
    """One number, its ratio to a baseline, and the target for the ratio."""

    scenario: str
    case: str
    value: float
    unit: str
    against: str
    ratio: float
    target: float | None = None

    @property
    def over(self) -> bool:
        return self.target is not None and self.ratio > self.target


class Size(msgspec.Struct, frozen=True):
    """Sizes of all scenarios: full for reliable numbers, quick for a smoke test."""

    rounds: int
    window: int
    histories: tuple[int, ...]
    idle: tuple[int, ...]
    plain_turns: int
    imports: int
    parked: int
    crowd: int
    crowd_turns: int
    followed: tuple[int, int]
    resumed: tuple[int, ...]
    forked: tuple[int, int]
    boards: tuple[int, int]
    shelves: tuple[int, int]
    bystanders: tuple[int, ...]
    vectors: tuple[int, int]
    call_rounds: int
    calls: int
    callers: int
    drives: int
    wakes: int
    parked_elsewhere: int


FULL = Size(
    rounds=7,
    window=100,
    histories=(50, 500, 5000),
    idle=(10, 100, 1000),
    plain_turns=500,
    imports=7,
    parked=2000,
    crowd=1000,
    crowd_turns=20,
    followed=(200, 200),
    resumed=(100, 4500, 5000),  # before and after a snapshot is due
    forked=(100, 10_000),
    boards=(10_000, 1_000_000),
    shelves=(0, 100_000),
    bystanders=(0, 50, 200),
    vectors=(100_000, 384),
    call_rounds=3,
    calls=100,
    callers=100,
    drives=1000,
    wakes=200,
    parked_elsewhere=10_000,
)
QUICK = Size(
    rounds=1,
    window=20,
    histories=(10, 20, 40),
    idle=(1, 10, 100),
    plain_turns=50,
    imports=2,
    parked=100,
    crowd=50,
    crowd_turns=3,
    followed=(5, 5),
    resumed=(10, 20, 40),
    forked=(10, 40),
    boards=(500, 2_000),
    shelves=(0, 1_000),
    bystanders=(0, 5, 20),
    vectors=(1_000, 32),
    call_rounds=1,
    calls=5,
    callers=5,
    drives=40,
    wakes=5,
    parked_elsewhere=400,
)

# A scenario; it measures in its scratch folder.
Scenario = Callable[[Size, Path], Iterator[Measure]]


class Rounds:
    """Costs by case and round. The minimum counts, since noise only adds."""

    def __init__(self) -> None:
        self._costs: defaultdict[str, list[float]] = defaultdict(list)

    def add(self, name: str, cost: float) -> None:
        self._costs[name].append(cost)

    def least(self, name: str) -> float:
        return min(self._costs[name])

    def ratio(self, name: str, to: str) -> float:
        return self.least(name) / self.least(to)


def settle() -> None:
    """Collect garbage, so that no case pays for an earlier one; collection stays enabled."""
    gc.collect()
