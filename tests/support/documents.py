"""Documents put where a URL says, as people keep them in their own database."""

import json
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from copy import deepcopy
from pathlib import Path
from typing import Any

from anyio import to_thread
from psycopg import AsyncConnection
from psycopg.sql import SQL, Identifier, Literal
from pymongo import AsyncMongoClient

Documents = Sequence[Mapping[str, Any]]


async def add(url: str, database: str | None, collection: str, documents: Documents) -> None:
    """Put documents into a collection, the last being the newest."""
    scheme, _, folder = url.partition(":")
    match scheme:
        case "sqlite":
            await to_thread.run_sync(into_sqlite, Path(folder), database, collection, documents)
        case "postgresql":
            await into_postgres(url, database, collection, documents)
        case _:
            await into_mongo(url, database, collection, documents)


def into_sqlite(folder: Path, name: str | None, table: str, documents: Documents) -> None:
    quoted = '"' + table.replace('"', '""') + '"'
    texts = [(json.dumps(document),) for document in documents]
    folder.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(folder / f"{name or 'documents'}.db")) as connection, connection:
        connection.execute(
            f"CREATE TABLE IF NOT EXISTS {quoted} (id INTEGER PRIMARY KEY, doc TEXT NOT NULL)"
        )
        connection.executemany(f"INSERT INTO {quoted} (doc) VALUES (?)", texts)


async def into_postgres(url: str, schema: str | None, table: str, documents: Documents) -> None:
    name = Identifier(schema, table) if schema else Identifier(table)
    async with await AsyncConnection.connect(url) as connection:
        if schema:
            await connection.execute(
                SQL("CREATE SCHEMA IF NOT EXISTS {}").format(Identifier(schema))
            )
        await connection.execute(
            SQL(
                "CREATE TABLE IF NOT EXISTS {} "
                "(id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, doc jsonb NOT NULL)"
            ).format(name)
        )
        texts = json.dumps([json.dumps(document) for document in documents])
        await connection.execute(
            SQL(
                "INSERT INTO {} (doc) SELECT value::jsonb FROM jsonb_array_elements_text({}) value"
            ).format(name, Literal(texts))
        )
    await connection.close()


async def into_mongo(url: str, database: str | None, name: str, documents: Documents) -> None:
    async with AsyncMongoClient[dict[str, Any]](url, timeoutMS=20_000) as client:
        chosen = client[database] if database else client.get_default_database()
        await chosen[name].insert_many(deepcopy(list(documents)))
