"""Artifacts in a SQLite file, beside the log."""

import json
import sqlite3
from collections.abc import Sequence
from contextlib import ExitStack, closing
from datetime import datetime
from functools import partial
from heapq import merge
from itertools import groupby, islice
from operator import itemgetter

from turnloom.adapters.sqlite import queries
from turnloom.adapters.sqlite.database import DatabaseFile
from turnloom.adapters.sqlite.keeping import Keeping
from turnloom.adapters.sqlite.readers import Readers
from turnloom.board.logic.rows import instant_of, microseconds, read_consumption, rows_of
from turnloom.board.service import IndexReader
from turnloom.board.spec import Artifact, BoardSummary, Consumption, FilterConfig, Page, Reader
from turnloom.board.spec.queries import Branch, IndexPlan, StoredArtifact


class SqliteArtifacts:
    """Artifacts in a SQLite file, for any number of processes; `follows_log` says whether what the
    log in the same file is told of the board is here at once."""

    def __init__(self, database: DatabaseFile, readers: Readers, follows_log: bool = False) -> None:
        self._database = database
        self._readers = readers
        self.follows_log = follows_log

    async def put(self, tenant: str, artifacts: Sequence[Artifact]) -> None:
        """Keep artifacts of a tenant in their order, all or none; one that is there already changes
        nothing.

        Raises:
            ArtifactExists: one is there with other content.
            InvalidArtifact: one cannot be kept as it is.
            UsageError: the store is closed.
            StoreUnavailable: nothing was kept; the same may be tried again later.
        """
        await self._database.write(Keeping(tenant, rows_of(tenant, artifacts)))

    async def consume(self, tenant: str, consumptions: Sequence[Consumption]) -> None:
        """Keep who of a tenant took what, all or none; one that is there already changes nothing.

        Raises:
            UsageError: the store is closed.
            StoreUnavailable: nothing was kept; the same may be tried again later.
        """
        await self._database.write(Keeping(tenant, (), consumptions))

    async def get(self, id: str, reader: Reader, now: datetime) -> Artifact | None:
        """The artifact of this id as a copy; none if there is none that the reader may see."""
        return await IndexReader(self, reader, now).get(id)

    async def query(
        self,
        filter: FilterConfig,
        reader: Reader,
        now: datetime,
        *,
        embed_meta: bool = False,
        cursor: str | None = None,
        count: bool = False,
    ) -> Page:
        """Copies of what the filter asks for and the reader may see.

        Raises:
            UsageError: the cursor is none of this filter's and reader's, or the store is closed.
            StoreUnavailable: the file cannot be read.
        """
        await self._database.ready()
        return await IndexReader(self, reader, now).query(filter, cursor, count, embed_meta)

    async def summary(self, filter: FilterConfig, reader: Reader, now: datetime) -> BoardSummary:
        """How many there are of what the filter asks for and the reader may see."""
        await self._database.ready()
        return await IndexReader(self, reader, now).summary(filter)

    async def upcoming(self, tenant: str, now: datetime, limit: int) -> Sequence[datetime]:
        """The next instants at which something becomes visible to a tenant, soonest first."""
        await self._database.ready()
        rows = self._database.rows(queries.OPENINGS_AFTER, tenant, microseconds(now), limit)
        return [instant_of(number) for (number,) in rows]

    async def find(self, tenant: str, id: str) -> Sequence[StoredArtifact]:
        """The rows of an id that are the tenant's or shared, by number."""
        await self._database.ready()
        return [
            StoredArtifact(*row) for row in self._database.rows(queries.ARTIFACTS_NAMED, tenant, id)
        ]

    async def walk(self, plan: IndexPlan, most: int) -> Sequence[StoredArtifact]:
        """The first rows of a plan in its direction, each once."""
        return await self._readers.run(partial(_walk, plan=plan, most=most))

    async def tally(self, plan: IndexPlan) -> Sequence[tuple[str, int]]:
        """How many rows of a plan have which visibility."""
        return await self._readers.run(partial(_tally, plan=plan))

    async def consumptions(self, tenant: str, ids: Sequence[str]) -> Sequence[Consumption]:
        """Who took one of these artifacts of a tenant."""
        return await self._readers.run(partial(_consumptions, tenant=tenant, ids=ids))

    async def weigh(self, groups: Sequence[Sequence[int]], most: int) -> Sequence[int]:
        """How many entries the terms of each group have, counted up to `most`."""
        return await self._readers.run(partial(_weigh, groups=groups, most=most))

    async def aclose(self) -> None:
        """Nothing of its own is open: it is closed with the log."""


def _walk(reader: sqlite3.Connection, plan: IndexPlan, most: int) -> list[StoredArtifact]:
    """Each term gives its rows in order and as they are needed, so the merge reads no more than it
    gives."""
    order = "DESC" if plan.newest_first else "ASC"
    with ExitStack() as opened:
        ways: list[sqlite3.Cursor] = []
        for branch in plan.branches:
            checks, values = _conditions(plan, branch)
            statement = queries.WALK.format(checks=checks, order=order)
            for term in branch.leads:
                way = reader.execute(statement, (term, *values))
                ways.append(opened.enter_context(closing(way)))
        merged = merge(*ways, key=itemgetter(0, 1), reverse=plan.newest_first)
        return [StoredArtifact(*row) for row, _ in islice(groupby(merged), most)]


def _tally(reader: sqlite3.Connection, plan: IndexPlan) -> list[tuple[str, int]]:
    found: list[tuple[str, int]] = []
    for branch in plan.branches:
        checks, values = _conditions(plan, branch)
        statement = queries.TALLY.format(terms=_marks(branch.leads), checks=checks)
        found += reader.execute(statement, (*branch.leads, *values))
    return found


def _consumptions(reader: sqlite3.Connection, tenant: str, ids: Sequence[str]) -> list[Consumption]:
    wanted = (tenant, json.dumps(ids, ensure_ascii=False))
    rows = reader.execute(queries.CONSUMPTIONS_OF, wanted)
    return [read_consumption(*row) for row in rows]


def _weigh(reader: sqlite3.Connection, groups: Sequence[Sequence[int]], most: int) -> list[int]:
    return [
        reader.execute(queries.ENTRIES.format(terms=_marks(group)), (*group, most)).fetchone()[0]
        for group in groups
    ]


def _conditions(plan: IndexPlan, branch: Branch) -> tuple[str, tuple[int | str, ...]]:
    """What is asked of each entry, and the values of all that."""
    checks = "".join(
        f" AND {queries.HAS_TERM.format(terms=_marks(group))}" for group in branch.groups
    )
    if branch.excluded:
        checks += f" AND NOT {queries.HAS_TERM.format(terms=_marks(branch.excluded))}"
    terms = (term for group in (*branch.groups, branch.excluded) for term in group)
    return checks, (*plan.low, *plan.high, plan.opened, *terms, plan.tenant, plan.now)


def _marks(values: Sequence[int]) -> str:
    return ", ".join("?" * len(values))
