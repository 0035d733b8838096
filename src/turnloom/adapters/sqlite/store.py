"""One store in a SQLite file: log, inbox, claims, snapshots, artifacts and beliefs."""

from pathlib import Path

from turnloom.adapters.sqlite.artifacts import SqliteArtifacts
from turnloom.adapters.sqlite.claims import SqliteClaims
from turnloom.adapters.sqlite.database import DatabaseFile
from turnloom.adapters.sqlite.inbox import SqliteInbox
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
    """Log, inbox, claims, snapshots, artifacts and beliefs in one file, for one loop and many
    processes.

    `patience` is how many seconds a write waits for another process that holds the file's lock;
    `checkpoint_after` is how many bytes may gather in the WAL before they are copied into the file.
    `lease` is for how many seconds a run is left to a process whose event loop stands still.
    `is_synced` says whether each commit waits for the disk, so that it survives a loss of power.
    `board` says whether the artifacts that the log is told of are kept here, beside it.
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
        self.pruner = SqlitePruner(self._database, patience)
        self.verifier = SqliteVerifier(self._database, self._readers, codec)

    async def aclose(self) -> None:
        """Finish what is pending and close the file; a second call changes nothing."""
        self._readers.close()
        self.claims.stop_renewing()
        await self._database.aclose()
        self.claims.close()
