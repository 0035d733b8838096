"""What steps came to, in a SQLite file, beside the log."""

import logging
from datetime import datetime

import msgspec

from turnloom.adapters.sqlite import queries
from turnloom.adapters.sqlite.database import Database
from turnloom.adapters.sqlite.writer import Write, Writer
from turnloom.kernel.values import Json

_log = logging.getLogger("turnloom.sqlite")


class _Keep(Write[None]):
    __slots__ = ("_over", "_values")

    def __init__(self, place: tuple[str, str], until: int | None, value: bytes, now: int) -> None:
        super().__init__()
        self._values = (*place, until, value)
        self._over = (place[0], now)

    def apply(self, writer: Writer) -> None:
        writer.execute(queries.DROP_RESULTS, self._over)
        writer.execute(queries.KEEP_RESULT, self._values)


class SqliteResults:
    """What steps came to, for any number of processes."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def find(self, tenant: str, key: str, now: datetime) -> Json:
        """What a tenant keeps under a key, up to and including the instant that it is kept until.

        Raises:
            StoreUnavailable: the file cannot be read.
        """
        await self._database.ready()
        found = self._database.rows(queries.FIND_RESULT, tenant, key, _micros(now))
        try:
            return msgspec.json.decode(found[0][0]) if found else None
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            _log.warning("A kept result cannot be read, and counts as lost: %s", error)
            return None

    async def keep(
        self, tenant: str, key: str, value: Json, now: datetime, until: datetime | None
    ) -> None:
        """Keep a value of a tenant under a key, in place of another; what of the tenant's is over
        by now goes.

        Raises:
            StoreUnavailable: nothing was kept.
        """
        over = _micros(until) if until is not None else None
        written = msgspec.json.encode(value)
        await self._database.write(_Keep((tenant, key), over, written, _micros(now)))


def _micros(instant: datetime) -> int:
    return round(instant.timestamp() * 1_000_000)
