"""Versions of the tables: SQL files of this package, applied in order, each in a transaction.

The files of a part are `schema/PART/NNNN_name.sql`, and their numbers are its versions. The table
`turnloom_schema` holds the version of each part.
"""

from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from psycopg import errors

from turnloom.adapters.postgres.connections import Session

# One process at a time creates or changes tables, until its transaction ends.
_LOCK = "SELECT pg_advisory_xact_lock(hashtext('turnloom_schema'))"
_TABLE = """
    CREATE TABLE IF NOT EXISTS turnloom_schema (part text PRIMARY KEY, version integer NOT NULL)"""
_VERSION = "SELECT version FROM turnloom_schema WHERE part = %s"
_SET = """
    INSERT INTO turnloom_schema VALUES (%s, %s)
    ON CONFLICT (part) DO UPDATE SET version = excluded.version"""


@dataclass(frozen=True, slots=True)
class Schema:
    """A part of the tables: its name, and the text of each version."""

    part: str
    steps: tuple[bytes, ...]

    @property
    def version(self) -> int:
        """The version in this release."""
        return len(self.steps)


@cache
def schema_of(part: str) -> Schema:
    """The files of a part."""
    folder = files("turnloom.adapters.postgres").joinpath("schema", part)
    names = sorted(file.name for file in folder.iterdir() if file.name.endswith(".sql"))
    assert [int(name[:4]) for name in names] == [*range(1, len(names) + 1)]
    return Schema(part, tuple(folder.joinpath(name).read_bytes() for name in names))


async def version_of(session: Session, schema: Schema) -> int:
    """The version of a part in the database; 0 if it is not there."""
    try:
        found = await (await session.execute(_VERSION, (schema.part,))).fetchone()
    except errors.UndefinedTable:
        return 0
    return found[0] if found else 0


async def migrate(session: Session, schema: Schema) -> list[int]:
    """Apply the versions that the database lacks; returns them. Another process may have been
    faster."""
    applied: list[int] = []
    for version, step in enumerate(schema.steps, 1):
        async with session.transaction():
            await session.execute(_LOCK)
            await session.execute(_TABLE)
            if await version_of(session, schema) == version - 1:
                await session.execute(step)
                await session.execute(_SET, (schema.part, version))
                applied.append(version)
    return applied
