"""One store in a PostgreSQL database: log, inbox, claims, snapshots, artifacts and beliefs."""

from turnloom.adapters.postgres.artifacts import PostgresArtifacts
from turnloom.adapters.postgres.backlog import PostgresBacklog
from turnloom.adapters.postgres.beliefs import PostgresBeliefs
from turnloom.adapters.postgres.beside import (
    PostgresAudit,
    PostgresFeedback,
    PostgresKeys,
    PostgresSchedules,
)
from turnloom.adapters.postgres.claims import PostgresClaims
from turnloom.adapters.postgres.clock import PostgresClock
from turnloom.adapters.postgres.database import Database
from turnloom.adapters.postgres.inbox import PostgresInbox
from turnloom.adapters.postgres.jobs import PostgresJobs
from turnloom.adapters.postgres.keeping import (
    PostgresCopies,
    PostgresMigrator,
    PostgresRemovals,
    PostgresTenants,
)
from turnloom.adapters.postgres.log import PostgresLog
from turnloom.adapters.postgres.pruner import PostgresPruner
from turnloom.adapters.postgres.schema import schema_of
from turnloom.adapters.postgres.signals import PostgresSignals
from turnloom.adapters.postgres.small import PostgresPlans, PostgresResults, PostgresSnapshots
from turnloom.adapters.postgres.verifier import PostgresVerifier
from turnloom.log.logic import Codec
from turnloom.log.ports import Clock


class PostgresStore:
    """Log, inbox, claims, snapshots, artifacts and beliefs in one database, for one event loop per
    process, and many processes on many machines.

    `timeout` is the number of seconds that a statement may take. `lease` is the number of seconds
    after which a process that does not respond loses its runs, by the clock of the database.
    `listen_url` is the direct URL of the server, if a pooler stands between. `clock` is the clock
    of this machine, from which `clock` of the store is corrected. `board` says whether artifacts in
    the log's events are also stored here.
    """

    def __init__(
        self,
        url: str,
        codec: Codec,
        *,
        timeout: float = 5.0,
        lease: float = 30.0,
        listen_url: str = "",
        clock: Clock | None = None,
        board: bool = True,
    ) -> None:
        self.clock = None if clock is None else PostgresClock(clock)
        self._database = Database(url, timeout, schema_of("store"), self.clock)
        self._signals = PostgresSignals(self._database, listen_url or url)
        self.log = PostgresLog(self._database, self._signals, codec, board=board)
        self.inbox = PostgresInbox(self._database, self._signals)
        self.claims = PostgresClaims(self._database, lease)
        self.snapshots = PostgresSnapshots(self._database)
        self.artifacts = PostgresArtifacts(self._database, follows_log=board)
        self.beliefs = PostgresBeliefs(self._database, follows_log=True)
        self.results = PostgresResults(self._database)
        self.plans = PostgresPlans(self._database)
        self.keys = PostgresKeys(self._database)
        self.audit = PostgresAudit(self._database)
        self.feedback = PostgresFeedback(self._database)
        self.schedules = PostgresSchedules(self._database)
        self.jobs = PostgresJobs(self._database)
        self.pruner = PostgresPruner(self._database)
        self.verifier = PostgresVerifier(self._database, codec)
        self.removals = PostgresRemovals(self._database)
        self.tenants = PostgresTenants(self._database)
        self.copies = PostgresCopies(self._database, self.log, codec)
        self.migrator = PostgresMigrator(self._database)
        self.backlog = PostgresBacklog(self._database)

    async def aclose(self) -> None:
        """Finish pending writes, release all claims, and close the connections. Idempotent."""
        if not self._database.closed:
            await self.claims.aclose()
            await self._signals.aclose()
            await self._database.aclose()
