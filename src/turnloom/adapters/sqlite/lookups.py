"""The statements that find documents in a table, and the rule that each must pass in the end.

The statements narrow down: releases of SQLite differ in how they read escapes inside JSON, so what
they find is checked once more as a value.
"""

import json

from turnloom.kernel.digests import chain_digest
from turnloom.kernel.values import Json
from turnloom.variables.logic.paths import belongs, steps, value_at
from turnloom.variables.ports import TENANT_FIELDS, Lookup

TABLE = "SELECT 1 FROM sqlite_master WHERE type IN ('table', 'view') AND name = ?"


def newest(lookup: Lookup) -> tuple[str, tuple[str, ...]]:
    """The statement that gives documents that may fit, the newest first, and its parameters."""
    tenant = "".join(
        f" AND (json_type(doc, '$.{field}') IS NULL OR json_extract(doc, '$.{field}') = ?2)"
        for field in TENANT_FIELDS
    )
    statement = (
        f"SELECT json(doc) FROM {_quote(lookup.collection)} "
        f"WHERE {_value(lookup.key)} = ?1{tenant} ORDER BY id DESC"
    )
    return statement, (lookup.value, lookup.tenant)


def fits(document: Json, lookup: Lookup) -> bool:
    """Whether a document has the value looked for and is not another tenant's."""
    found = value_at(document, steps(lookup.key))
    return found == lookup.value and belongs(document, TENANT_FIELDS, lookup.tenant)


def index(lookup: Lookup) -> str:
    """The statement that makes the index; SQLite ends every index with the id of the row."""
    value = _value(lookup.key)
    name = f"turnloom_{chain_digest(lookup.collection, value)}"
    return f"CREATE INDEX IF NOT EXISTS {name} ON {_quote(lookup.collection)} ({value})"


def _value(key: str) -> str:
    """What stands under a key. Escaped names are names of their own to SQLite before 3.44."""
    names = steps(key)
    plain = "".join(f'."{name}"' for name in names)
    escaped = "".join(f".{json.dumps(name)}" for name in names)
    found = [f"json_extract(doc, {_text('$' + path)})" for path in dict.fromkeys((plain, escaped))]
    return found[0] if len(found) == 1 else f"coalesce({', '.join(found)})"


def _text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
