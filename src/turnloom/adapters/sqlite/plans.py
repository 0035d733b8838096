"""Plans, in a SQLite file, beside the log."""

import logging

import msgspec

from turnloom.adapters.sqlite import queries
from turnloom.adapters.sqlite.database import Database
from turnloom.adapters.sqlite.writer import Write, Writer
from turnloom.runtime.spec import StoredPlan

_log = logging.getLogger("turnloom.sqlite")


class _Keep(Write[None]):
    __slots__ = ("_values",)

    def __init__(self, tenant: str, digest: str, plan: bytes) -> None:
        super().__init__()
        self._values = (tenant, digest, plan)

    def apply(self, writer: Writer) -> None:
        writer.execute(queries.KEEP_PLAN, self._values)


class SqlitePlans:
    """Plans by tenant and digest, for any number of processes."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def keep(self, tenant: str, digest: str, plan: StoredPlan) -> None:
        """Keep a plan; one that is there already stays as it is.

        Raises:
            StoreUnavailable: nothing was kept.
        """
        if await self.find(tenant, digest) is None:
            await self._database.write(_Keep(tenant, digest, msgspec.json.encode(plan)))

    async def find(self, tenant: str, digest: str) -> StoredPlan | None:
        """The plan of this digest, if it was kept and can be read.

        Raises:
            StoreUnavailable: the file cannot be read.
        """
        await self._database.ready()
        found = self._database.rows(queries.FIND_PLAN, tenant, digest)
        try:
            return msgspec.json.decode(found[0][0], type=StoredPlan) if found else None
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            _log.warning("The plan %s cannot be read, and counts as lost: %s", digest, error)
            return None
