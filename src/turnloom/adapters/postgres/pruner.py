"""Remove finished runs from a PostgreSQL store, each completely and in one transaction."""

from collections.abc import AsyncGenerator, Collection, Sequence, Set
from datetime import datetime
from functools import partial
from typing import Any

from turnloom.adapters.postgres import store_queries as queries
from turnloom.adapters.postgres.connections import Session
from turnloom.adapters.postgres.database import Database
from turnloom.adapters.postgres.keeping import add_removal
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

# The number of runs per query.
PAGE = 200

# Seconds that removing one run may take.
REMOVING = 60.0

# An artifact of a run: number, id, time, visibility and data.
_ArtifactRow = tuple[int, str, int, str, str]


class PostgresPruner:
    """Removes finished runs, safely alongside other processes."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def ended(
        self, tenant: str, before: datetime, statuses: Collection[str]
    ) -> AsyncGenerator[EndedRun, None]:
        """The runs of a tenant that ended before a time, latest first."""
        last = (microseconds(before), 0)
        while rows := await self._database.rows(queries.ENDED_BEFORE, tenant, *last, PAGE):
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
        work = partial(_remove, run=run, without=without, dry_run=dry_run, record=record)
        return await self._database.transact(work, REMOVING)

    async def compact(self) -> None:
        """Do nothing: PostgreSQL's autovacuum frees the space for later rows."""
        await self._database.ready()


async def _remove(
    session: Session, run: RunKey, without: Set[str], dry_run: bool, record: Removal | None
) -> PrunedRun | None:
    # Appends hold the claim of the run until they commit, so none is under way.
    await session.execute(queries.HOLD_CLAIM, run)
    found = await (await session.execute(queries.ENDED_RUN, run)).fetchone()
    if found is None:
        return None
    n, status, ended, events = found
    gone = without if dry_run else frozenset[str]()
    branches = await _column(session, queries.BRANCHES_OF, n)
    if any(branch not in gone for branch in branches):
        return None
    terms = list(terms_of_run(*run))
    cursor = await session.execute(queries.ARTIFACTS_OF_RUN, (terms, run.tenant))
    artifacts: list[_ArtifactRow] = [(*row,) for row in await cursor.fetchall()]
    ids = [id for _, id, *_ in artifacts]
    takers = await _column(session, queries.TAKERS_OF, run.tenant, ids)
    if any(taker not in without for taker in takers if taker != run.id):
        return None
    if not dry_run:
        await _remove_artifacts(session, run.tenant, artifacts)
        for statement in queries.REMOVE_BY_NUMBER:
            await session.execute(statement, (n,))
        for statement in queries.REMOVE_BY_RUN:
            await session.execute(statement, run)
        if record is not None:
            counts = {"runs": 1, "events": events, "artifacts": len(artifacts)}
            await add_removal(session, run.tenant, record, counts)
    return PrunedRun(run.id, status, instant_of(ended), events, artifacts=len(artifacts))


async def _column(session: Session, statement: Any, *values: Any) -> list[str]:
    return [row[0] for row in await (await session.execute(statement, values)).fetchall()]


async def _remove_artifacts(
    session: Session, tenant: str, artifacts: Sequence[_ArtifactRow]
) -> None:
    entries = [
        (term, at, n)
        for n, _, at, visibility, data in artifacts
        for term in _terms(tenant, visibility, data)
    ]
    columns = tuple([list(column) for column in zip(*entries, strict=True)] or ([], [], []))
    await session.execute(queries.REMOVE_TERMS, columns)
    await session.execute(queries.REMOVE_ARTIFACTS, ([n for n, *_ in artifacts],))
    await session.execute(queries.REMOVE_CONSUMPTIONS, (tenant, [id for _, id, *_ in artifacts]))


def _terms(tenant: str, visibility: str, data: str) -> tuple[int, ...]:
    """The index terms of an artifact; none if it cannot be read."""
    open_to = read_visibility(visibility)
    try:
        return rows_of(tenant, [read_artifact(open_to, data)])[0].terms if open_to else ()
    except InvalidArtifact:
        return ()
