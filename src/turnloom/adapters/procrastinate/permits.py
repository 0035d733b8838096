"""Places of limits that hold for all processes of a database."""

import asyncio
import logging

from turnloom.adapters.procrastinate import queries
from turnloom.adapters.procrastinate.database import JobDatabase
from turnloom.errors import StoreUnavailable
from turnloom.runtime.spec import Limit

# Renewals per lease, so that a late one loses nothing.
RENEWALS = 3

_log = logging.getLogger("turnloom.procrastinate")


class SharedPermits:
    """Places of limits, by the clock of the database. Those of a process that does not respond are
    free after `lease` seconds."""

    def __init__(self, database: JobDatabase, lease: float) -> None:
        self._database = database
        self._lease = lease
        self._holder = ""
        self._held: set[tuple[str, str]] = set()
        self._renewing: asyncio.Task[None] | None = None

    async def acquire(self, limit: Limit, place: str) -> float:
        """Take a place; 0, or the seconds until it is worth asking again.

        Raises:
            StoreUnavailable: nothing was taken.
        """
        if not self._holder:
            (row,) = await self._database.call(queries.HOLDER)
            self._holder = self._holder or row["holder"]
        (row,) = await self._database.call(
            queries.ACQUIRE,
            name=limit.name,
            most=limit.at_once,
            per_minute=limit.per_minute,
            holder=self._holder,
            place=place,
            lease=self._lease,
        )
        if row["seconds"] == 0 and limit.at_once:
            self._held.add((limit.name, place))
            if self._renewing is None:
                self._renewing = asyncio.create_task(self._renew())
        return row["seconds"]

    async def release(self, limit: Limit, place: str) -> None:
        """Give a place back; what was taken per minute stays taken. If the server fails, the place
        is free after its lease."""
        if (limit.name, place) not in self._held:
            return
        self._held.discard((limit.name, place))
        try:
            await self._database.call(
                queries.RELEASE, name=limit.name, holder=self._holder, place=place
            )
        except StoreUnavailable as error:
            _log.warning("A place of a limit is free after its lease: %s", error)

    async def aclose(self) -> None:
        """Stop renewing."""
        if self._renewing is not None:
            self._renewing.cancel()
            await asyncio.wait({self._renewing})

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(self._lease / RENEWALS)
            if not self._held:
                continue
            try:
                await self._database.call(queries.RENEW, holder=self._holder, lease=self._lease)
            except StoreUnavailable as error:
                _log.warning("Places of limits cannot be renewed; retrying: %s", error)
