"""SQL statements for documents.

Keys and names are part of the statement, quoted by psycopg, since PostgreSQL uses an index only if
the statement contains its expression. Only a prefix of a key's value is indexed, so that documents
with values beyond the limit of an index entry can still be written.
"""

import json
from itertools import starmap

from psycopg.sql import SQL, Composed, Identifier, Literal

from turnloom.kernel.digests import chain_digest
from turnloom.variables.logic.paths import steps
from turnloom.variables.ports import TENANT_FIELDS, Lookup, Scalar

# Indexed characters of a value: far below the limit of 2704 bytes per index entry.
PREFIX = 256
# PostgreSQL truncates longer names, which could make two names equal.
NAME_BYTES = 63

_NEWEST = SQL("""
    SELECT doc::text FROM {table}
    WHERE {conditions} {tenant}
    ORDER BY id DESC LIMIT 1""")
_TEXT = SQL("{found} = to_jsonb({value}::text)")
_PREFIX = SQL("{prefix} = left({value}::text, {length}) AND {equal}")
_NUMBER = SQL("{found} = {value}::jsonb")
_TENANT = SQL("AND (NOT doc ? {field} OR doc -> {field} = to_jsonb({tenant}::text))")
_EXISTS = SQL("SELECT to_regclass({table}) IS NOT NULL")
_INDEX = SQL("""
    BEGIN;
    SELECT pg_advisory_xact_lock(hashtext({name}));
    CREATE INDEX IF NOT EXISTS {index} ON {table} ({prefix}, id DESC);
    COMMIT""")


def newest(lookup: Lookup) -> Composed:
    """The newest matching document."""
    tenant = [
        _TENANT.format(field=Literal(field), tenant=Literal(lookup.tenant))
        for field in TENANT_FIELDS
    ]
    return _NEWEST.format(
        table=_table(lookup),
        conditions=SQL(" AND ").join(starmap(_equals, lookup.conditions)),
        tenant=SQL(" ").join(tenant),
    )


def index(lookup: Lookup) -> Composed:
    """Create the index, under a lock so that processes do it one after the other."""
    name = f"turnloom_{chain_digest(lookup.collection, lookup.key)}"
    return _INDEX.format(
        name=Literal(name),
        index=Identifier(name),
        table=_table(lookup),
        prefix=_prefix(lookup.key),
    )


def exists(lookup: Lookup) -> Composed:
    """Whether the table exists."""
    return _EXISTS.format(table=Literal(_table(lookup).as_string()))


def is_name(name: str) -> bool:
    """Whether this is a valid name of a schema or table."""
    return 0 < len(name.encode()) <= NAME_BYTES


def _table(lookup: Lookup) -> Identifier:
    if lookup.database is None:
        return Identifier(lookup.collection)
    return Identifier(lookup.database, lookup.collection)


def _equals(key: str, value: Scalar) -> Composed:
    """The condition that a key has a value; a text is first compared by its indexed prefix."""
    found = _found(key)
    if not isinstance(value, str):
        return _NUMBER.format(found=found, value=Literal(json.dumps(value)))
    equal = _TEXT.format(found=found, value=Literal(value))
    prefix, length = _prefix(key), Literal(PREFIX)
    return _PREFIX.format(prefix=prefix, value=Literal(value), length=length, equal=equal)


def _found(key: str) -> Composed:
    return SQL(" -> ").join([SQL("doc"), *(Literal(name) for name in steps(key))])


def _prefix(key: str) -> Composed:
    *names, last = steps(key)
    inside = SQL(" -> ").join([SQL("doc"), *(Literal(name) for name in names)])
    return SQL("left({} ->> {}, {})").format(inside, Literal(last), Literal(PREFIX))
