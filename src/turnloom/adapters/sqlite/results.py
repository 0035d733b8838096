"""What steps came to, in a SQLite file, beside the log."""

from datetime import datetime

import msgspec

from turnloom.adapters.sqlite import queries
from turnloom.adapters.sqlite.database import Database
from turnloom.adapters.sqlite.writer import Write, Writer
from turnloom.kernel.values import Json


class _Keep(Write[None]):
    __slots__ = ("_now", "_values")

    def __init__(self, key: str, until: int | None, value: bytes, now: int) -> None:
        super().__init__(size=len(value))
        self._values = (key, until, value)
        self._now = now

    def apply(self, writer: Writer) -> None:
        writer.execute(queries.DROP_RESULTS, (self._now,))
        writer.execute(queries.KEEP_RESULT, self._values)


class SqliteResults:
    """What steps came to, for any number of processes."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def find(self, key: str, now: datetime) -> Json:
        """What is kept under a key, up to and including the instant that it is kept until.

        Raises:
            StoreUnavailable: the file cannot be read.
        """
        await self._database.ready()
        found = self._database.rows(queries.FIND_RESULT, key, _micros(now))
        return msgspec.json.decode(found[0][0]) if found else None

    async def keep(self, key: str, value: Json, now: datetime, until: datetime | None) -> None:
        """Keep a value under a key, in place of another; what is over by now goes.

        Raises:
            StoreUnavailable: nothing was kept.
        """
        over = _micros(until) if until is not None else None
        await self._database.write(_Keep(key, over, msgspec.json.encode(value), _micros(now)))


def _micros(instant: datetime) -> int:
    return round(instant.timestamp() * 1_000_000)
