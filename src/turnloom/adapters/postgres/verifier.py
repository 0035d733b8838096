"""Verify that a PostgreSQL store still contains what was stored in it."""

from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from hashlib import sha256

from turnloom.adapters.postgres import store_queries as queries
from turnloom.adapters.postgres.database import Database
from turnloom.errors import UnknownKind
from turnloom.log.logic import Codec
from turnloom.log.spec import RunKey
from turnloom.runtime.spec import VerifiedRun

# Batches per query.
PAGE = 200

# The size of a digest in bytes.
DIGEST = 16

# A batch: the positions of its first and last event, its data and its digest.
_Batch = tuple[int, int, bytes, bytes]


class PostgresVerifier:
    """Checks the batches of runs against their positions and their chain of digests."""

    def __init__(self, database: Database, codec: Codec) -> None:
        self._database = database
        self._codec = codec

    async def verify(
        self, tenant: str, run: str | None = None
    ) -> AsyncGenerator[VerifiedRun, None]:
        """The runs of a tenant, oldest first, or one of them.

        Raises:
            StoreUnavailable: the server fails or does not answer in time.
        """
        for n, id in await self._database.rows(queries.RUNS_OF, tenant, run, run):
            yield await self._verify(RunKey(tenant, id), n)

    async def _verify(self, key: RunKey, n: int) -> VerifiedRun:
        """Check a run. What another run recorded of a branch is checked with both."""
        problems: list[str] = []
        count, wanted, digest = 0, 1, b""
        for source, name, above, upto in await self._database.rows(queries.PARTS_OF, n):
            async for first, last, data, stored in self._batches(source, above, upto):
                if first != wanted:
                    problems.append(f"{_events(wanted, first - 1)} missing")
                elif sha256(digest + data).digest()[:DIGEST] != stored:
                    problems.append(f"{_events(first, last)} not as stored")
                lines = data.split(b"\n")
                problems += self._unreadable(lines, first, name or "")
                count, wanted, digest = count + len(lines), last + 1, stored
        [(known,)] = await self._database.rows(queries.KNOWN_OF, n, *key)
        if known >= wanted or not count:
            problems.append(f"{_events(wanted, max(known, 1))} missing")
        return VerifiedRun(key.id, count, tuple(problems))

    async def _batches(self, source: int, above: int, upto: int) -> AsyncIterator[_Batch]:
        while rows := await self._database.rows(queries.VERIFIED, source, above, upto, PAGE):
            for first, last, data, digest in rows:
                yield first, last, data, digest
                above = last

    def _unreadable(self, lines: Sequence[bytes], first: int, run: str) -> Iterator[str]:
        for seq, line in enumerate(lines, first):
            try:
                event = self._codec.decode(line)
            except UnknownKind as error:
                yield f"event {seq} is unreadable: {error}"
                continue
            if (event.seq, event.run) != (seq, run):
                yield f"event {seq} is event {event.seq} of run {event.run!r}"


def _events(first: int, last: int) -> str:
    return f"event {first} is" if first == last else f"events {first} to {last} are"
