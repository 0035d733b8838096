"""SQL statements that find documents in a table, and the final check of each document.

Releases of SQLite differ in how they treat escapes inside JSON. So the statements only narrow the
candidates, and each is checked again as a value.
"""

import json

from turnloom.kernel.digests import chain_digest
from turnloom.kernel.values import Json
from turnloom.variables.logic.paths import belongs, meets, steps
from turnloom.variables.ports import TENANT_FIELDS, Lookup, Scalar

TABLE = "SELECT 1 FROM sqlite_master WHERE type IN ('table', 'view') AND name = ?"


def newest(lookup: Lookup) -> tuple[str, tuple[Scalar, ...]]:
    """The statement that returns candidates, newest first, and its parameters."""
    tenant = "".join(
        f" AND (json_type(doc, '$.{field}') IS NULL OR json_extract(doc, '$.{field}') = ?2)"
        for field in TENANT_FIELDS
    )
    more = "".join(
        f" AND {_value(key)} = ?{number}" for number, (key, _) in enumerate(lookup.filter, 3)
    )
    statement = (
        f"SELECT json(doc) FROM {_quote(lookup.collection)} "
        f"WHERE {_value(lookup.key)} = ?1{tenant}{more} ORDER BY id DESC"
    )
    return statement, (lookup.value, lookup.tenant, *(value for _, value in lookup.filter))


def fits(document: Json, lookup: Lookup) -> bool:
    """Whether a document has the values and does not belong to another tenant."""
    return meets(document, lookup.conditions) and belongs(document, TENANT_FIELDS, lookup.tenant)


def index(lookup: Lookup) -> str:
    """The statement that creates the index. SQLite appends the row id to every index."""
    value = _value(lookup.key)
    name = f"turnloom_{chain_digest(lookup.collection, value)}"
    return f"CREATE INDEX IF NOT EXISTS {name} ON {_quote(lookup.collection)} ({value})"


def _value(key: str) -> str:
    """The expression for the value of a key. SQLite before 3.44 does not decode escaped names."""
    names = steps(key)
    plain = "".join(f'."{name}"' for name in names)
    escaped = "".join(f".{json.dumps(name)}" for name in names)
    found = [f"json_extract(doc, {_text('$' + path)})" for path in dict.fromkeys((plain, escaped))]
    return found[0] if len(found) == 1 else f"coalesce({', '.join(found)})"


def _text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
