"""Versions of the tables: SQL files of this package, applied in order, each in a transaction.

The files of a part are `schema/PART/NNNN_name.sql`, and their numbers are its versions. The table
`turnloom_schema` holds the version of each part.
"""

from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from psycopg import errors

from turnloom.adapters.postgres.connections import Session
from turnloom.runtime.spec import Migration

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
    """A part of the tables: its name, and the name and the text of each version."""

    part: str
    steps: tuple[tuple[str, bytes], ...]

    @property
    def version(self) -> int:
        """The version in this release."""
        return len(self.steps)

    @property
    def migrations(self) -> list[Migration]:
        """The versions, in order."""
        return [Migration(version, name) for version, (name, _) in enumerate(self.steps, 1)]


@cache
def schema_of(part: str) -> Schema:
    """The files of a part."""
    folder = files("turnloom.adapters.postgres").joinpath("schema", part)
    names = sorted(file.name for file in folder.iterdir() if file.name.endswith(".sql"))
    assert [int(name[:4]) for name in names] == [*range(1, len(names) + 1)]
    steps = [(name[5:-4], folder.joinpath(name).read_bytes()) for name in names]
    return Schema(part, tuple(steps))


async def version_of(session: Session, schema: Schema) -> int:
    """The version of a part in the database; 0 if it is not there."""
    try:
        found = await (await session.execute(_VERSION, (schema.part,))).fetchone()
    except errors.UndefinedTable:
        return 0
    return found[0] if found else 0


async def take_step(session: Session, schema: Schema) -> Migration | None:
    """Take the first step that the database lacks, in a transaction; None if there is none.
    Another process may have been faster."""
    async with session.transaction():
        await session.execute(_LOCK)
        await session.execute(_TABLE)
        version = await version_of(session, schema) + 1
        if version > schema.version:
            return None
        name, text = schema.steps[version - 1]
        await session.execute(text)
        await session.execute(_SET, (schema.part, version))
    return Migration(version, name)
