"""Explain the results of backtests."""

from collections.abc import Iterator, Sequence
from itertools import zip_longest

from turnloom.explain.logic.replay import NOTHING, different_fields
from turnloom.explain.spec.backtest import (
    CERTAINTIES,
    PARTS,
    BacktestDifference,
    BacktestEnd,
    RunBacktest,
)
from turnloom.explain.spec.replay import DifferentField
from turnloom.kernel.values import as_data
from turnloom.runtime.backtest.spec import BacktestedRun, FrameSide, PartDifference
from turnloom.variables.spec.unknown import Unknown


def explain_backtest(found: BacktestedRun) -> RunBacktest:
    """A backtested run as people see it."""
    differences = {
        part: counts
        for part in PARTS
        if (counts := {each: n for each in CERTAINTIES if (n := found.counts.get((part, each), 0))})
    }
    end = found.end
    return RunBacktest(
        found.run,
        found.workflow,
        found.form,
        found.turns,
        compared={part: found.compared.get(part, 0) for part in PARTS},
        differences=differences,
        first=_difference(found.first) if found.first is not None else None,
        end=BacktestEnd(end.seq, end.turn, end.reason) if end is not None else None,
    )


def _difference(found: PartDifference) -> BacktestDifference:
    return BacktestDifference(
        found.part,
        found.certainty,
        found.name,
        found.seq,
        turn=found.turn,
        recorded=_side(found.before),
        edited=_side(found.after),
        unknown=found.unknown,
        fields=tuple(_fields(found)),
    )


def _side(value: object) -> str:
    if value is None:
        return NOTHING
    return f"unknown: {value.why}" if isinstance(value, Unknown) else as_data(value)


def _fields(found: PartDifference) -> Iterator[DifferentField]:
    """The parts that differ, side by side."""
    if found.part == "frame":
        yield from _segments(*found.segments)
    elif found.recorded is not None and found.decided is not None and not found.unknown:
        if found.recorded.kind == found.decided.kind and found.name != "":
            yield from _of_events(found)
    else:
        yield DifferentField(found.name, _side(found.before), _side(found.after))


def _of_events(found: PartDifference) -> Iterator[DifferentField]:
    yield DifferentField(found.name, _side(found.before), _side(found.after))
    if found.part == "route" and found.recorded and found.decided:
        yield from different_fields(found.recorded, found.decided)


def _segments(before: Sequence[FrameSide], after: Sequence[FrameSide]) -> Iterator[DifferentField]:
    """The segments of two frames that differ, by origin."""
    ours = {_numbered(before, place): each for place, each in enumerate(before)}
    theirs = {_numbered(after, place): each for place, each in enumerate(after)}
    for key in dict.fromkeys((*ours, *theirs)):
        one, other = ours.get(key), theirs.get(key)
        if one is None or other is None or one.text != other.text:
            yield from _lines(key[0], one, other)


def _numbered(sides: Sequence[FrameSide], place: int) -> tuple[str, int]:
    origin = sides[place].origin
    return origin, sum(each.origin == origin for each in sides[:place])


def _lines(origin: str, one: FrameSide | None, other: FrameSide | None) -> Iterator[DifferentField]:
    """The lines of a segment that differ."""
    before = one.text.strip().splitlines() if one else [NOTHING]
    after = other.text.strip().splitlines() if other else [NOTHING]
    name = origin
    for old, new in zip_longest(before, after, fillvalue=""):
        if old != new:
            yield DifferentField(name, old, new)
            name = ""
