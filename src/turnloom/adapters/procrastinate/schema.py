"""Versions of the tables: those of Procrastinate, and those of the scheduler beside them.

The files of the scheduler are `schema/NNNN_name.sql`, and their numbers are its versions.
Procrastinate creates its tables with one file, and updates older ones with its `migrations`: the
number of the last one is its version. The table `turnloom_schema` holds the version of each part.
"""

import re
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import LiteralString, NamedTuple, cast

from procrastinate.schema import SchemaManager
from psycopg import AsyncConnection

from turnloom.adapters.procrastinate import queries
from turnloom.runtime.spec import Migration

OURS, THEIRS = "scheduler", "procrastinate"

Session = AsyncConnection[dict[str, object]]


class SchemaStep(NamedTuple):
    """A file that brings a part to a version."""

    part: str
    version: int
    name: str
    text: LiteralString

    @property
    def migration(self) -> Migration:
        """The step as users see it."""
        return Migration(self.version, f"{self.part} {self.name}")


class SchemaVersions(NamedTuple):
    """The versions of both parts in a database. 0: not there; None: Procrastinate's tables were
    there before ours, so that their owner keeps them."""

    ours: int
    theirs: int | None


@cache
def known() -> SchemaVersions:
    """The versions of this release, and of the installed Procrastinate."""
    return SchemaVersions(_ours()[-1].version, _theirs()[-1].version)


def missing(found: SchemaVersions) -> list[SchemaStep]:
    """The steps that a database lacks, in order."""
    steps: list[SchemaStep] = []
    if found.theirs == 0:
        steps.append(_created())
    elif found.theirs is not None:
        steps += [step for step in _theirs() if step.version > found.theirs]
    return steps + [step for step in _ours() if step.version > found.ours]


async def versions_in(session: Session) -> SchemaVersions:
    """The versions of both parts in a database."""
    there = await (await session.execute(queries.IS_THERE)).fetchone()
    assert there is not None
    rows = await (await session.execute(queries.VERSIONS)).fetchall() if there["ours"] else []
    versions = {str(row["part"]): cast(int, row["version"]) for row in rows}
    kept_elsewhere = None if there["theirs"] else 0
    return SchemaVersions(versions.get(OURS, 0), versions.get(THEIRS, kept_elsewhere))


async def take_step(session: Session) -> SchemaStep | None:
    """Take the first step that the database lacks, in a transaction; None if there is none.
    Another process may have been faster."""
    async with session.transaction():
        await session.execute(queries.BEGIN_SCHEMA)
        steps = missing(await versions_in(session))
        if not steps:
            return None
        await session.execute(steps[0].text)
        await session.execute(
            queries.END_SCHEMA, {"part": steps[0].part, "version": steps[0].version}
        )
    return steps[0]


def _created() -> SchemaStep:
    """The tables of Procrastinate as its release creates them."""
    return SchemaStep(THEIRS, _theirs()[-1].version, "tables", SchemaManager.get_schema())


@cache
def _ours() -> tuple[SchemaStep, ...]:
    folder = files("turnloom.adapters.procrastinate").joinpath("schema")
    return tuple(
        SchemaStep(OURS, int(file.name[:4]), file.name[5:-4], _text(file)) for file in _sql(folder)
    )


@cache
def _theirs() -> tuple[SchemaStep, ...]:
    """The migrations of Procrastinate: `03.04.00_50_post_name.sql` has the number 3040050."""
    folder = files("procrastinate").joinpath("sql", "migrations")
    return tuple(
        SchemaStep(THEIRS, int(re.sub(r"\D", "", file.name[:11])), file.name[12:-4], _text(file))
        for file in _sql(folder)
    )


def _sql(folder: Traversable) -> list[Traversable]:
    return sorted(
        (file for file in folder.iterdir() if file.name.endswith(".sql")),
        key=lambda file: file.name,
    )


def _text(file: Traversable) -> LiteralString:
    return cast(LiteralString, file.read_text("utf-8"))
