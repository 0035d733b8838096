"""Branches: runs whose first events are stored with other runs.

A branch refers to the runs that recorded its first events by segments, in order. The segments of a
branch of a branch refer to the same runs, so no reader follows a chain.
"""

import sqlite3
from collections.abc import Generator
from typing import NamedTuple

from turnloom.adapters.sqlite import queries
from turnloom.errors import LogDamaged
from turnloom.log.logic import check_cut, no_position
from turnloom.log.spec import RunKey


class SharedSpan(NamedTuple):
    """The positions of a branch above `above` up to `upto`, which the run `source` recorded."""

    above: int
    upto: int
    source: int


class StoredBatch(NamedTuple):
    """Where a batch ends, its digest, and the number of the run that recorded it."""

    last: int
    digest: bytes
    source: int


def segments_of(connection: sqlite3.Connection, run: int) -> list[SharedSpan]:
    """The segments of a branch; none of another run."""
    return [SharedSpan(*row) for row in connection.execute(queries.SEGMENTS_OF, (run,))]


def spans(
    connection: sqlite3.Connection, run: int, above: int, upto: int
) -> Generator[SharedSpan, None, None]:
    """The segments that hold the positions of a run above one, up to another, its own included."""
    for segment in segments_of(connection, run):
        if above < segment.upto:
            end = min(segment.upto, upto)
            yield SharedSpan(above, end, segment.source)
            above = end
        if above >= upto:
            return
    yield SharedSpan(above, upto, run)


def batch_at(connection: sqlite3.Connection, run: RunKey, n: int, seq: int) -> StoredBatch:
    """The batch of a run that holds a position.

    Raises:
        UsageError: the run has no event there.
        LogDamaged: the event is missing.
    """
    segments = segments_of(connection, n)
    source = next((each.source for each in segments if each.above < seq <= each.upto), n)
    found = connection.execute(queries.BATCH_AT, (source, seq)).fetchone() if seq > 0 else None
    if found is None or found[0] < seq:
        (end,) = connection.execute(queries.POSITION_OF, (n,)).fetchone()
        if 0 < seq <= end:
            raise LogDamaged(run.id, seq)
        raise no_position(run.id, seq, end)
    last, digest = found
    return StoredBatch(last, digest, source)


def cut_after(
    connection: sqlite3.Connection, run: RunKey, n: int, at: int
) -> tuple[list[SharedSpan], bytes]:
    """The segments of a branch of a run after a position, and the digest of the last batch.

    Raises:
        UsageError: the run has no event there, or the position is inside a batch.
        LogDamaged: the event is missing.
    """
    batch = batch_at(connection, run, n, at)
    check_cut(run.id, at, batch.last)
    return [*spans(connection, n, 0, at)], batch.digest
