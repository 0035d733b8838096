"""Columns that runs are listed and filtered by; each append updates them."""

import sqlite3
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from turnloom.adapters.sqlite import queries
from turnloom.board.logic.rows import EPOCH, TICK, microseconds
from turnloom.log.events import ENDS, RunStarted
from turnloom.log.logic import BROKEN, STATUSES, status_of
from turnloom.log.spec import Event, RunFilter

# Runs read at once.
PAGE_RUNS = 100


class BegunRun(NamedTuple):
    """The searchable columns of a run, from the events of its first append."""

    workflow: str | None
    user: str | None
    started: int
    status: str
    ended: int | None


def begun_run(events: Sequence[Event]) -> BegunRun:
    """The searchable columns of a run that begins with these events."""
    first, last = events[0], events[-1]
    started = first.data if isinstance(first.data, RunStarted) else None
    named = (started.workflow, started.user) if started else (None, None)
    return BegunRun(*named, microseconds(first.at), status_of(last), ended_at(last))


def ended_at(last: Event) -> int | None:
    """When a run ended with this event, if it did."""
    return microseconds(last.at) if last.kind in ENDS else None


class RunsPage:
    """Reads the ends of runs of a tenant, the one begun last coming first.

    Columns narrow down which runs are read. Whether an event can be read shows only then, so what
    is found is checked once more.
    """

    def __init__(self, tenant: str, most: int, which: RunFilter, *, unfinished: bool) -> None:
        self._query = chosen_ends(which, unfinished=unfinished)
        self._most = min(most, PAGE_RUNS)
        self._values: dict[str, Any] = {
            "tenant": tenant,
            "most": self._most,
            "workflow": which.workflow,
            "user": which.user,
            "since": which.since and microseconds(which.since),
            "until": which.until and microseconds(which.until),
        }

    def __call__(
        self, reader: sqlite3.Connection, before: int
    ) -> tuple[list[tuple[str, bytes, bytes, datetime]], int | None]:
        """A page of runs with lower numbers, with their ends and starts, and the number to continue
        from if there may be more."""
        rows = reader.execute(self._query, self._values | {"before": before}).fetchall()
        more = rows[-1][0] if rows and len(rows) == self._most else None
        return [(*ends_of_row(row[:4]), _instant(row[4])) for row in rows], more


def chosen_ends(which: RunFilter, *, unfinished: bool) -> str:
    """The statement that gives the ends of runs that a filter may choose."""
    ways = [*_ways(which, unfinished)]
    if len(ways) == 1:
        return queries.ENDS_CHOSEN.format(chosen=ways[0])
    each = " UNION ALL ".join(queries.ONE_WAY.format(chosen=way) for way in ways)
    return queries.ENDS_CHOSEN.format(chosen=queries.CHOSEN_EITHER.format(ways=each))


def _ways(which: RunFilter, unfinished: bool) -> Iterator[str]:
    """A statement for each status, so that all of them give runs in the order of an index."""
    common = [
        *(["workflow = :workflow"] if which.workflow is not None else []),
        *(["user = :user"] if which.user is not None else []),
        *(["started >= :since"] if which.since is not None else []),
        *(["started <= :until"] if which.until is not None else []),
        *(["ended IS NULL"] if unfinished else []),
    ]
    # A run that cannot be read may have had any status when it was written.
    statuses = () if BROKEN in which.statuses else sorted(which.statuses & _CONDITIONS.keys())
    for status in [[_CONDITIONS[each]] for each in statuses] or [[]]:
        conditions = "".join(f" AND {each}" for each in (*status, *common))
        yield queries.CHOSEN.format(conditions=conditions)


# Conditions for runs by status, as far as the log tells.
_CONDITIONS = {
    each: queries.OF_STATUS.format(status=each) for each in STATUSES if each != BROKEN
} | {"unfinished": queries.OF_UNFINISHED}


def ends_of_row(row: tuple[int, str, bytes | None, bytes | None]) -> tuple[str, bytes, bytes]:
    """A run, the first event of its first batch, and the last of its last one."""
    _, id, first, last = row
    return id, (first or b"").partition(b"\n")[0], (last or b"").rpartition(b"\n")[2]


def _instant(started: int) -> datetime:
    return EPOCH + started * TICK
