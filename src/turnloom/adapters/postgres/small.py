"""The small ports of a PostgreSQL store: plans, results and snapshots."""

import logging
from datetime import datetime

import msgspec

from turnloom.adapters.postgres import store_queries as queries
from turnloom.adapters.postgres.database import Database
from turnloom.board.logic.rows import microseconds
from turnloom.kernel.values import Json
from turnloom.log.spec import RunKey
from turnloom.runtime.spec import StoredPlan

_log = logging.getLogger("turnloom.postgres")


class PostgresPlans:
    """Plans by tenant and digest, for any number of machines."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def keep(self, tenant: str, digest: str, plan: StoredPlan) -> None:
        """Store a plan; an existing one is unchanged.

        Raises:
            StoreUnavailable: nothing was stored.
        """
        if await self.find(tenant, digest) is None:
            await self._database.write(queries.KEEP_PLAN, tenant, digest, msgspec.json.encode(plan))

    async def find(self, tenant: str, digest: str) -> StoredPlan | None:
        """The plan with this digest, if it is stored and readable.

        Raises:
            StoreUnavailable: the server fails or does not answer in time.
        """
        found = await self._database.rows(queries.FIND_PLAN, tenant, digest)
        try:
            return msgspec.json.decode(found[0][0], type=StoredPlan) if found else None
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            _log.warning("Plan %s is unreadable and treated as missing: %s", digest, error)
            return None


class PostgresResults:
    """Cache of step results, for any number of machines."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def find(self, tenant: str, key: str, now: datetime) -> Json:
        """The result under a key, unless it has expired; it is valid up to and including its
        expiry.

        Raises:
            StoreUnavailable: the server fails or does not answer in time.
        """
        found = await self._database.rows(queries.FIND_RESULT, tenant, key, microseconds(now))
        try:
            return msgspec.json.decode(found[0][0]) if found else None
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            _log.warning("A cached result is unreadable and ignored: %s", error)
            return None

    async def keep(
        self,
        tenant: str,
        key: str,
        value: Json,
        now: datetime,
        until: datetime | None,
        *,
        user: str = "",
    ) -> None:
        """Store a result under a key, replacing an earlier one, and delete the tenant's expired
        results.

        Raises:
            StoreUnavailable: nothing was stored.
        """
        expiry = None if until is None else microseconds(until)
        written = msgspec.json.encode(value)
        row = (tenant, key, expiry, written, user)
        await self._database.write(queries.KEEP_RESULT, tenant, microseconds(now), key, *row)

    async def erase(self, tenant: str, user: str, *, dry_run: bool = False) -> int:
        """Remove the results of a person, and return how many there were; a dry run counts them.

        Raises:
            StoreUnavailable: nothing was removed, or a retry finds the rest.
        """
        statement = queries.COUNT_RESULTS if dry_run else queries.ERASE_RESULTS
        [(count,)] = await self._database.write(statement, tenant, user)
        return count


class PostgresSnapshots:
    """The last snapshot of each run."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def save(self, run: RunKey, seq: int, state: bytes) -> None:
        """Store the state of a run at `seq`, replacing an earlier one."""
        await self._database.write(queries.SAVE_STATE, *run, seq, state)

    async def load(self, run: RunKey) -> tuple[int, bytes] | None:
        """The last snapshot and its position."""
        found = await self._database.rows(queries.LOAD_STATE, *run)
        return (found[0][0], found[0][1]) if found else None
