"""Batches: the events of one append, as lines of JSON."""

import sqlite3
from collections.abc import Generator, Iterable
from contextlib import closing
from hashlib import blake2b
from itertools import chain

import msgspec

from turnloom.adapters.sqlite import queries
from turnloom.adapters.sqlite.branches import segments_of
from turnloom.errors import LogDamaged, UnknownKind
from turnloom.log.spec import RunKey

# The maximum number of events and bytes that are read and decoded before the event loop continues.
# A batch is always read whole.
PAGE_EVENTS = 200
PAGE_BYTES = 2**20

# The size of a digest in bytes.
DIGEST = 16

SEQ_BITS = 32
SEQ_MASK = (1 << SEQ_BITS) - 1


class _EventId(msgspec.Struct, frozen=True, gc=False):
    """The id of an event, without its other fields."""

    id: str


_decode_lines = msgspec.json.Decoder(_EventId).decode_lines
# Encode and decode sets of ids.
encode_ids = msgspec.json.Encoder().encode
decode_ids = msgspec.json.Decoder(set[str]).decode


def digest_of(previous: bytes, data: bytes) -> bytes:
    """The digest of a batch, chained to that of the previous batch."""
    return blake2b(data, digest_size=DIGEST, key=previous).digest()


def ids_of(data: bytes) -> list[str]:
    """The ids of the events in a batch.

    Raises:
        UnknownKind: the batch cannot be read.
    """
    try:
        return [event.id for event in _decode_lines(data)]
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise UnknownKind(
            f"Cannot write to a run or send it a message: its events are unreadable ({error}). "
            "Restore it from a backup of the store. Other runs are not affected."
        ) from error


def lines_after(
    connection: sqlite3.Connection, run: RunKey, after: int
) -> Generator[list[bytes], None, None]:
    """The events of a run after a position, batch by batch.

    Raises:
        LogDamaged: some events are missing.
    """
    wanted = after + 1
    with closing(connection.execute(queries.BATCHES_AFTER, (*run, after))) as found:
        nearest = found.fetchone()
        if nearest is None:
            return
        is_gap = nearest[0] > wanted
        before = _inherited(connection, run, wanted) if is_gap else ()
        for first, last, data in chain(before, (nearest,), found):
            lines: list[bytes] = data.split(b"\n")
            if first > wanted:
                raise LogDamaged(run.id, wanted, first - 1)
            if len(lines) != last + 1 - first:
                raise LogDamaged(run.id, first, last)
            yield lines[wanted - first :]
            wanted = last + 1


def _inherited(
    connection: sqlite3.Connection, run: RunKey, wanted: int
) -> Iterable[tuple[int, int, bytes]]:
    """The batches from a position on that other runs recorded, if the run is a branch."""
    (n,) = connection.execute(queries.NUMBER_OF, run).fetchone()
    for _, upto, source in segments_of(connection, n):
        if wanted <= upto:
            yield from connection.execute(queries.BATCHES_WITHIN, (source, wanted, upto))
            wanted = upto + 1


def page_after(
    connection: sqlite3.Connection, after: int, run: RunKey
) -> tuple[list[bytes], int | None]:
    """Some events of a run after a position, and the position to continue from if there are
    more."""
    page: list[bytes] = []
    size = 0
    with closing(lines_after(connection, run, after)) as batches:
        for lines in batches:
            page += lines
            size += sum(map(len, lines))
            if len(page) >= PAGE_EVENTS or size >= PAGE_BYTES:
                return page, after + len(page)
    return page, None
