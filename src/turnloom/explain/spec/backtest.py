"""Backtests as people see them."""

from math import sqrt

import msgspec

from turnloom.explain.spec.replay import DifferentField
from turnloom.explain.spec.text import ReadableExplanation, counted, table
from turnloom.kernel.markup import grid, visible

# The quantile of the normal distribution for intervals of 95 %.
NORMAL = 1.959964

# What is compared, in the order of tables.
PARTS = ("value", "route", "frame")

# How sure a difference is: before the first changed frame, after it, or dependent on something that
# the record does not hold.
CERTAINTIES = ("certain", "assumed", "undecided")

# Columns of a difference, and of the sum.
SIDES = ("", "in the record", "edited")
HEADER = ("", *CERTAINTIES, "runs that differ", "95 % interval")


class Rate(msgspec.Struct, frozen=True):
    """How many of the runs differ in something, with the Wilson interval of the share."""

    name: str
    runs: int
    of: int

    @property
    def share(self) -> float:
        """The share of the runs, from 0 to 1."""
        return self.runs / self.of if self.of else 0.0

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % Wilson interval of the share."""
        if not self.of:
            return 0.0, 1.0
        n, p, z = self.of, self.share, NORMAL
        middle = (p + z * z / (2 * n)) / (1 + z * z / n)
        half = z * sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n)
        return max(0.0, middle - half), min(1.0, middle + half)

    @property
    def cells(self) -> tuple[str, str]:
        """The share and its interval as text."""
        low, high = self.interval
        return f"{self.runs} of {self.of} ({self.share:.1%})", f"{low:.1%} to {high:.1%}"


class BacktestDifference(msgspec.Struct, frozen=True):
    """A value, route or frame that the edited definition decides otherwise: what it is in the
    record, and what it would have been. `unknown` names what an undecided one depends on; `fields`
    are the parts that differ, side by side."""

    part: str
    certainty: str
    name: str
    seq: int
    turn: int
    recorded: str
    edited: str
    unknown: tuple[str, ...] = ()
    fields: tuple[DifferentField, ...] = ()

    def __str__(self) -> str:
        where = f"event {self.seq}" + (f", turn {self.turn}" if self.turn else "")
        lines = [f"{self.part} {self.name} ({self.certainty}), at {where}"]
        lines += [f"  It depends on {each}." for each in self.unknown]
        rows = [SIDES, *(each.cells for each in self.fields)]
        return "\n".join((*lines, *(f"  {each}" for each in table(rows))))


class BacktestEnd(msgspec.Struct, frozen=True):
    """The point from which the recorded answers no longer apply, and why."""

    seq: int
    turn: int
    reason: str


class RunBacktest(msgspec.Struct, frozen=True):
    """A backtested run: how many values, routes and frames were `compared`, and by part and
    certainty how many differ. `first` is the first difference, and `end` the point at which the
    comparison ends before the end of the record."""

    run: str
    workflow: str
    form: str
    turns: int
    compared: dict[str, int]
    differences: dict[str, dict[str, int]]
    first: BacktestDifference | None = None
    end: BacktestEnd | None = None

    @property
    def differs(self) -> bool:
        """Whether anything is different or undecided, or the comparison ended early."""
        return bool(self.differences) or self.end is not None

    def count(self, part: str, *certainties: str) -> int:
        """The number of differences of a part, of all or some certainties."""
        found = self.differences.get(part, {})
        return sum(found.get(each, 0) for each in certainties or CERTAINTIES)

    @property
    def headline(self) -> str:
        """The result as one line."""
        about = f"{self.run} {self.workflow}"
        if not self.differs:
            return f"✓ {about}: {counted(self.turns, 'turn')}, nothing differs"
        found = [
            f"{counted(number, part)} {certainty}"
            for part in PARTS
            for certainty in CERTAINTIES
            if (number := self.count(part, certainty))
        ]
        end = f"; ends at event {self.end.seq}: {self.end.reason}" if self.end else ""
        return f"✗ {about}: {', '.join(found) or 'nothing differs'}{end}"


class RefusedBacktest(msgspec.Struct, frozen=True):
    """A run that cannot be backtested with this definition, and why."""

    run: str
    reason: str


class Backtest(ReadableExplanation, frozen=True):
    """The result of a backtest: what an edited definition would have changed in recorded runs.

    Certain differences come before the first changed frame of a run. Assumed ones come after it, on
    the assumption that models answer the same. Undecided ones depend on something that the record
    does not hold.
    """

    definition: str
    runs: tuple[RunBacktest, ...]
    refused: tuple[RefusedBacktest, ...] = ()

    def rate(self, name: str) -> Rate:
        """How many runs differ in a part (`value`, `route`, `frame`), or have something
        `undecided`."""
        if name == "undecided":
            found = [any(each.count(part, name) for part in PARTS) for each in self.runs]
        else:
            found = [bool(each.count(name, "certain", "assumed")) for each in self.runs]
        return Rate(name, sum(found), len(self.runs))

    def total(self, part: str, certainty: str) -> int:
        """The number of differences of a part and a certainty in all runs."""
        return sum(each.count(part, certainty) for each in self.runs)

    @property
    def rows(self) -> list[tuple[str, ...]]:
        """The sum over all runs, as a table."""
        rows: list[tuple[str, ...]] = [HEADER]
        for part in PARTS:
            numbers = [str(self.total(part, each)) for each in CERTAINTIES]
            rows.append((f"{part}s", *numbers, *self.rate(part).cells))
        rows.append(("undecided", "", "", "", *self.rate("undecided").cells))
        return rows

    @property
    def headline(self) -> str:
        """The number of runs and the definition."""
        ended = sum(each.end is not None for each in self.runs)
        end = f", {ended} of them in part" if ended else ""
        return f"{counted(len(self.runs), 'run')} with {self.definition}{end}"

    def __str__(self) -> str:
        lines = [self.headline, *(f"  {each}" for each in table(self.rows))]
        lines += [each.headline for each in self.runs if each.differs]
        lines += [f"! {each.run}: {each.reason}" for each in self.refused]
        return visible("\n".join(lines))

    def _repr_html_(self) -> str:
        return grid(self.headline, self.rows[0], self.rows[1:])
