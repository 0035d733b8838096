"""One store in a SQLite file: log, inbox, claims, snapshots, artifacts and beliefs."""

from pathlib import Path

from turnloom.adapters.sqlite.artifacts import SqliteArtifacts
from turnloom.adapters.sqlite.beside import (
    SqliteAudit,
    SqliteFeedback,
    SqliteKeys,
    SqliteSchedules,
)
from turnloom.adapters.sqlite.claims import SqliteClaims
from turnloom.adapters.sqlite.database import DatabaseFile
from turnloom.adapters.sqlite.inbox import SqliteInbox
from turnloom.adapters.sqlite.jobs import SqliteJobs
from turnloom.adapters.sqlite.keeping import (
    SqliteCopies,
    SqliteMigrator,
    SqliteRemovals,
    SqliteTenants,
)
from turnloom.adapters.sqlite.log import SqliteLog
from turnloom.adapters.sqlite.pruner import SqlitePruner
from turnloom.adapters.sqlite.readers import Readers
from turnloom.adapters.sqlite.small import (
    SqliteBeliefs,
    SqlitePlans,
    SqliteResults,
    SqliteSnapshots,
)
from turnloom.adapters.sqlite.verifier import SqliteVerifier
from turnloom.log.logic import Codec


class SqliteStore:
    """Log, inbox, claims, snapshots, artifacts and beliefs in one file, for one event loop and many
    processes.

    `patience` is how many seconds a write waits for the lock of another process. `checkpoint_after`
    is the size of the WAL in bytes that triggers a checkpoint. `lease` is the number of seconds
    after which a process with a blocked event loop loses its runs. `is_synced` makes each commit
    wait for the disk, so that it survives a power failure. `board` says whether artifacts in the
    log's events are also stored here.
    """

    def __init__(
        self,
        path: Path | str,
        codec: Codec,
        *,
        patience: float = 5.0,
        checkpoint_after: int = 16 * 2**20,
        lease: float = 30.0,
        board: bool = True,
        is_synced: bool = False,
    ) -> None:
        self._database = DatabaseFile(Path(path), patience, checkpoint_after, is_synced=is_synced)
        self.log = SqliteLog(self._database, codec, board=board)
        self.inbox = SqliteInbox(self._database)
        self.claims = SqliteClaims(self._database, lease)
        self.snapshots = SqliteSnapshots(self._database)
        self._readers = Readers(self._database.path, patience)
        self.artifacts = SqliteArtifacts(self._database, self._readers, board)
        self.beliefs = SqliteBeliefs(self._database)
        self.results = SqliteResults(self._database)
        self.plans = SqlitePlans(self._database)
        self.keys = SqliteKeys(self._database)
        self.audit = SqliteAudit(self._database)
        self.feedback = SqliteFeedback(self._database)
        self.schedules = SqliteSchedules(self._database)
        self.jobs = SqliteJobs(self._database)
        self.pruner = SqlitePruner(self._database, patience)
        self.verifier = SqliteVerifier(self._database, self._readers, codec)
        self.removals = SqliteRemovals(self._database)
        self.tenants = SqliteTenants(self._database)
        self.copies = SqliteCopies(self._database, self._readers, self.log, codec)
        self.migrator = SqliteMigrator(self._database.path, patience)

    async def aclose(self) -> None:
        """Finish pending writes and close the file. Idempotent."""
        self._readers.close()
        self.claims.stop_renewing()
        await self._database.aclose()
        self.claims.close()
