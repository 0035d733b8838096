"""Verify that a SQLite file still contains what was stored in it."""

import sqlite3
from collections.abc import AsyncGenerator, Iterator, Sequence
from functools import partial

from turnloom.adapters.sqlite import queries
from turnloom.adapters.sqlite.batches import SEQ_MASK, digest_of
from turnloom.adapters.sqlite.branches import segments_of
from turnloom.adapters.sqlite.database import DatabaseFile
from turnloom.adapters.sqlite.readers import Readers, reading
from turnloom.errors import StoreUnavailable, UnknownKind
from turnloom.log.logic import Codec
from turnloom.log.spec import RunKey
from turnloom.runtime.spec import VerifiedRun


class SqliteVerifier:
    """Checks the batches of runs against their positions and their chain of digests."""

    def __init__(self, database: DatabaseFile, readers: Readers, codec: Codec) -> None:
        self._database = database
        self._readers = readers
        self._codec = codec

    async def verify(
        self, tenant: str, run: str | None = None
    ) -> AsyncGenerator[VerifiedRun, None]:
        """The runs of a tenant, oldest first, or one of them.

        Raises:
            StoreUnavailable: the file cannot be read, or is damaged as a whole.
        """
        await self._database.ready()
        if run is None:
            await self._readers.run(self._check_file)
        for n, id in await self._readers.run(partial(_runs_of, tenant=tenant, run=run)):
            verify = partial(_verify, key=RunKey(tenant, id), n=n, codec=self._codec)
            yield await self._readers.run(verify)

    def _check_file(self, reader: sqlite3.Connection) -> None:
        (found,) = reader.execute(queries.CHECK_FILE).fetchone()
        if found != "ok":
            raise StoreUnavailable(
                f"{str(self._database.path)!r} is damaged: {found}. Replace it with a backup, or "
                "recover its data with `sqlite3 FILE .recover`."
            )


def _runs_of(reader: sqlite3.Connection, tenant: str, run: str | None) -> Sequence[tuple[int, str]]:
    return reader.execute(queries.RUNS_OF, (tenant, run)).fetchall()


def _verify(reader: sqlite3.Connection, key: RunKey, n: int, codec: Codec) -> VerifiedRun:
    """Check a run. What another run recorded of a branch is checked with both."""
    problems: list[str] = []
    count, wanted, digest = 0, 1, b""
    with reading(reader):
        for source, name, upto in _parts(reader, key, n):
            for first, last, data, stored in reader.execute(
                queries.BATCHES_OF, (source, wanted, upto)
            ):
                if first != wanted:
                    problems.append(f"{_events(wanted, first - 1)} missing")
                elif digest_of(digest, data) != stored:
                    problems.append(f"{_events(first, last)} not as stored")
                lines = data.split(b"\n")
                problems += _unreadable(lines, first, name, codec)
                count, wanted, digest = count + len(lines), last + 1, stored
        (known,) = reader.execute(queries.KNOWN_OF, (n, *key)).fetchone()
    if known >= wanted or not count:
        problems.append(f"{_events(wanted, max(known, 1))} missing")
    return VerifiedRun(key.id, count, tuple(problems))


def _parts(reader: sqlite3.Connection, key: RunKey, n: int) -> Iterator[tuple[int, str, int]]:
    """The runs that recorded the events of a run, with their ids and up to which position."""
    for segment in segments_of(reader, n):
        (name,) = reader.execute(queries.NAME_OF, (segment.source,)).fetchone() or ("",)
        yield segment.source, name, segment.upto
    yield n, key.id, SEQ_MASK


def _unreadable(lines: Sequence[bytes], first: int, run: str, codec: Codec) -> Iterator[str]:
    for seq, line in enumerate(lines, first):
        try:
            event = codec.decode(line)
        except UnknownKind as error:
            yield f"event {seq} is unreadable: {error}"
            continue
        if (event.seq, event.run) != (seq, run):
            yield f"event {seq} is event {event.seq} of run {event.run!r}"


def _events(first: int, last: int) -> str:
    return f"event {first} is" if first == last else f"events {first} to {last} are"
