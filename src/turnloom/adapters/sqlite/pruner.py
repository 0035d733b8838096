"""Remove finished runs from a SQLite file, each completely and in one transaction."""

import sqlite3
from collections.abc import AsyncGenerator, Collection, Sequence, Set
from contextlib import closing
from datetime import datetime
from pathlib import Path

import anyio.to_thread

from turnloom.adapters.sqlite import queries
from turnloom.adapters.sqlite.connections import connect
from turnloom.adapters.sqlite.database import DatabaseFile
from turnloom.adapters.sqlite.faults import unavailable
from turnloom.adapters.sqlite.keeping import add_removal
from turnloom.adapters.sqlite.writer import StoreWrite, Writer
from turnloom.board.logic.rows import (
    instant_of,
    microseconds,
    read_artifact,
    read_visibility,
    rows_of,
    terms_of_run,
)
from turnloom.errors import InvalidArtifact
from turnloom.log.spec import RunKey
from turnloom.runtime.spec import EndedRun, PrunedRun, Removal

# The number of runs per query, and of pages freed per transaction.
PAGE = 200
PAGES = 500

# An artifact of a run: number, id, time, visibility and data.
_ArtifactRow = tuple[int, str, int, str, str]


class _Remove(StoreWrite[PrunedRun | None]):
    __slots__ = ("_dry_run", "_pruned_too", "_record", "_run")

    def __init__(
        self, run: RunKey, without: Set[str], dry_run: bool, record: Removal | None
    ) -> None:
        super().__init__(run)
        self._run = run
        self._pruned_too = without
        self._dry_run = dry_run
        self._record = record

    def apply(self, writer: Writer) -> PrunedRun | None:
        found = writer.execute(queries.ENDED_RUN, self._run).fetchone()
        if found is None:
            return None
        n, status, ended, events = found
        if self._has_branches(writer, n):
            return None
        terms = terms_of_run(*self._run)
        marks = ", ".join("?" * len(terms))
        own = queries.ARTIFACTS_OF_RUN.format(terms=marks)
        artifacts: list[_ArtifactRow] = writer.execute(own, (*terms, self._run.tenant)).fetchall()
        if any(self._is_used(writer, id) for _, id, *_ in artifacts):
            return None
        if not self._dry_run:
            self._remove(writer, n, artifacts)
            if self._record is not None:
                counts = {"runs": 1, "events": events, "artifacts": len(artifacts)}
                add_removal(writer, self._run.tenant, self._record, counts)
        return PrunedRun(self._run.id, status, instant_of(ended), events, artifacts=len(artifacts))

    def _remove(self, writer: Writer, n: int, artifacts: Sequence[_ArtifactRow]) -> None:
        for artifact in artifacts:
            self._remove_artifact(writer, artifact)
        for statement in queries.REMOVE_BY_NUMBER:
            writer.execute(statement, (n,))
        for statement in queries.REMOVE_BY_RUN:
            writer.execute(statement, self._run)
        writer.run_ends.forget(self._run)

    def _has_branches(self, writer: Writer, n: int) -> bool:
        """Whether a branch that stays begins with events of this run."""
        branches = writer.execute(queries.BRANCHES_OF, (n,)).fetchall()
        gone = self._pruned_too if self._dry_run else frozenset[str]()
        return any(branch not in gone for (branch,) in branches)

    def _is_used(self, writer: Writer, artifact: str) -> bool:
        """Whether a run that stays consumed an artifact."""
        takers = writer.execute(queries.TAKERS_OF, (self._run.tenant, artifact)).fetchall()
        return any(taker not in self._pruned_too for (taker,) in takers if taker != self._run.id)

    def _remove_artifact(self, writer: Writer, artifact: _ArtifactRow) -> None:
        n, id, at, visibility, data = artifact
        terms = _terms(self._run.tenant, visibility, data)
        writer.connection.executemany(queries.REMOVE_TERM, [(term, at, n) for term in terms])
        writer.execute(queries.REMOVE_ARTIFACT, (n,))
        writer.execute(queries.REMOVE_CONSUMPTIONS, (self._run.tenant, id))


def _terms(tenant: str, visibility: str, data: str) -> tuple[int, ...]:
    """The index terms of an artifact; none if it cannot be read."""
    open_to = read_visibility(visibility)
    try:
        return rows_of(tenant, [read_artifact(open_to, data)])[0].terms if open_to else ()
    except InvalidArtifact:
        return ()


class SqlitePruner:
    """Removes finished runs, safely alongside other processes."""

    def __init__(self, database: DatabaseFile, patience: float) -> None:
        self._database = database
        self._patience = patience

    async def ended(
        self, tenant: str, before: datetime, statuses: Collection[str]
    ) -> AsyncGenerator[EndedRun, None]:
        """The runs of a tenant that ended before a time, latest first."""
        await self._database.ready()
        last = (microseconds(before), 0)
        while rows := self._database.rows(queries.ENDED_BEFORE, tenant, *last, PAGE):
            for at, _, run, status in rows:
                if status in statuses:
                    yield EndedRun(run, status, instant_of(at))
            last = rows[-1][:2]

    async def remove(
        self,
        run: RunKey,
        *,
        without: Set[str] = frozenset(),
        dry_run: bool = False,
        record: Removal | None = None,
    ) -> PrunedRun | None:
        """Remove a finished run and all its data, and add that to the record; None if a run that
        stays consumed one of its artifacts.

        Raises:
            StoreUnavailable: nothing was removed.
        """
        return await self._database.write(_Remove(run, without, dry_run, record))

    async def compact(self) -> None:
        """Return freed space to the file system, in small steps.

        Raises:
            StoreUnavailable: the file cannot be written; the rest can be freed later.
        """
        await self._database.ready()
        path = self._database.path
        try:
            await anyio.to_thread.run_sync(_compact, path, self._patience)
        except sqlite3.Error as error:
            raise unavailable(error, path) from error


def _compact(path: Path, patience: float) -> None:
    with closing(connect(path, patience)) as connection:
        while connection.execute(queries.FREE_PAGES).fetchone()[0]:
            connection.execute(queries.GIVE_BACK.format(pages=PAGES)).fetchall()
        connection.execute(queries.CHECKPOINT).fetchone()
        connection.execute(queries.TRUNCATE).fetchone()
