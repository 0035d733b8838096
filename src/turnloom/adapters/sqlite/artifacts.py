"""Artifacts in the SQLite file of the log."""

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from datetime import datetime
from functools import partial
from heapq import merge
from itertools import groupby, islice
from operator import itemgetter
from typing import Any

from turnloom.adapters.sqlite import queries
from turnloom.adapters.sqlite.board_writes import AddToBoard
from turnloom.adapters.sqlite.database import DatabaseFile
from turnloom.adapters.sqlite.readers import Readers
from turnloom.board.logic.rows import instant_of, microseconds, read_consumption, rows_of
from turnloom.board.ports import ArtifactIndex
from turnloom.board.service import IndexedArtifacts
from turnloom.board.spec import Artifact, Consumption
from turnloom.board.spec.queries import (
    ArtifactCount,
    Branch,
    IndexPlan,
    IndexStretch,
    StoredArtifact,
)


class SqliteArtifacts(IndexedArtifacts):
    """Artifacts in a SQLite file, for any number of processes. `follows_log` says whether artifacts
    in events of the log in the same file appear here at once."""

    def __init__(self, database: DatabaseFile, readers: Readers, follows_log: bool = False) -> None:
        self._database = database
        self._readers = readers
        self.follows_log = follows_log

    async def put(self, tenant: str, artifacts: Sequence[Artifact]) -> None:
        """Store artifacts of a tenant in order, all or none; existing ones are unchanged.

        Raises:
            ArtifactExists: one exists with other content.
            InvalidArtifact: one cannot be stored.
            UsageError: the store is closed.
            StoreUnavailable: nothing was stored; a retry may succeed later.
        """
        await self._database.write(AddToBoard(tenant, rows_of(tenant, artifacts)))

    async def consume(self, tenant: str, consumptions: Sequence[Consumption]) -> None:
        """Store consumptions of a tenant, all or none; existing ones are unchanged.

        Raises:
            UsageError: the store is closed.
            StoreUnavailable: nothing was stored; a retry may succeed later.
        """
        await self._database.write(AddToBoard(tenant, (), consumptions))

    async def opened(self) -> ArtifactIndex:
        """This store, with its file opened.

        Raises:
            UsageError: the store is closed.
            StoreUnavailable: the file cannot be read.
        """
        await self._database.ready()
        return self

    async def upcoming(self, tenant: str, now: datetime, limit: int) -> Sequence[datetime]:
        """The next times at which artifacts become visible to a tenant, ascending."""
        await self._database.ready()
        rows = self._database.rows(queries.OPENINGS_AFTER, tenant, microseconds(now), limit)
        return [instant_of(number) for (number,) in rows]

    async def find(self, tenant: str, id: str) -> Sequence[StoredArtifact]:
        """The rows with an id that belong to the tenant or are shared, by number."""
        await self._database.ready()
        return [
            StoredArtifact(*row) for row in self._database.rows(queries.ARTIFACTS_NAMED, tenant, id)
        ]

    async def walk(self, plan: IndexPlan, most: int) -> IndexStretch:
        """The first rows of a plan in its order, each once, at most `most`."""
        return await self._readers.run(partial(_walk, plan=plan, most=most))

    async def tally(self, plan: IndexPlan) -> Sequence[tuple[str, int]]:
        """The number of rows of a plan per visibility."""
        return await self._readers.run(partial(_tally, plan=plan))

    async def counts(self, plan: IndexPlan) -> Sequence[ArtifactCount]:
        """The number of rows of a plan per visibility and traits."""
        return await self._readers.run(partial(_counts, plan=plan))

    async def consumptions(self, tenant: str, ids: Sequence[str]) -> Sequence[Consumption]:
        """The consumptions of a tenant's artifacts."""
        return await self._readers.run(partial(_consumptions, tenant=tenant, ids=ids))

    async def weigh(self, groups: Sequence[Sequence[int]], most: int) -> Sequence[int]:
        """The number of index entries of each group of terms, counted up to `most`."""
        return await self._readers.run(partial(_weigh, groups=groups, most=most))

    async def aclose(self) -> None:
        """Do nothing: it closes with the log."""


def _walk(reader: sqlite3.Connection, plan: IndexPlan, most: int) -> IndexStretch:
    """Merge the rows of all terms. Each cursor is read lazily, so no more rows are read than
    needed."""
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
        rows = [StoredArtifact(*row) for row, _ in islice(groupby(merged), most)]
    return IndexStretch(rows, (rows[-1].at, rows[-1].n) if len(rows) == most else None)


def _tally(reader: sqlite3.Connection, plan: IndexPlan) -> list[tuple[str, int]]:
    return [(text, count) for text, count in _aggregate(reader, plan, queries.TALLY)]


def _counts(reader: sqlite3.Connection, plan: IndexPlan) -> list[ArtifactCount]:
    return [ArtifactCount(*row) for row in _aggregate(reader, plan, queries.COUNTS)]


def _aggregate(
    reader: sqlite3.Connection, plan: IndexPlan, aggregate: str
) -> Iterator[tuple[Any, ...]]:
    for branch in plan.branches:
        checks, values = _conditions(plan, branch)
        statement = aggregate.format(terms=_marks(branch.leads), checks=checks)
        yield from reader.execute(statement, (*branch.leads, *values))


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
    """The conditions on each index entry, and their parameters."""
    checks = "".join(
        f" AND {queries.HAS_TERM.format(terms=_marks(group))}" for group in branch.groups
    )
    if branch.excluded:
        checks += f" AND NOT {queries.HAS_TERM.format(terms=_marks(branch.excluded))}"
    terms = (term for group in (*branch.groups, branch.excluded) for term in group)
    return checks, (*plan.low, *plan.high, plan.opened, *terms, plan.tenant, plan.now)


def _marks(values: Sequence[int]) -> str:
    return ", ".join("?" * len(values))
