"""Documents in PostgreSQL."""

import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from psycopg import AsyncConnection
from psycopg.sql import SQL, Identifier, Literal

from weft.adapters.postgres import PostgresDocuments
from weft.testing.contracts import DocumentStoreContract
from weft.testing.contracts.documents import Put
from weft.variables.ports import DocumentStore


async def add(
    url: str, schema: str | None, table: str, documents: Sequence[Mapping[str, Any]]
) -> None:
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


class TestDocuments(DocumentStoreContract):
    @pytest.fixture(autouse=True)
    def _server(self, postgres_url: str) -> None:
        self.url = postgres_url

    @asynccontextmanager
    async def fresh(self) -> AsyncGenerator[tuple[DocumentStore, Put], None]:
        async def put(
            schema: str | None, table: str, documents: Sequence[Mapping[str, Any]]
        ) -> None:
            await add(self.url, schema, table, documents)

        store = PostgresDocuments(self.url)
        yield store, put
        await store.aclose()
