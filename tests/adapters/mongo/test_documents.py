"""Documents in MongoDB: over TCP, and by the meaning that mongomock gives to queries."""

import os
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from copy import deepcopy
from typing import Any
from urllib.parse import urlsplit

import mongomock
import pytest
from pymongo import AsyncMongoClient

from turnloom.adapters.mongo import MongoDocuments, reading
from turnloom.testing.contracts import DocumentStoreContract
from turnloom.testing.contracts.documents import Put, lookup
from turnloom.variables.ports import DocumentStore, Lookup


class OverTcp(DocumentStoreContract):
    url: str

    @asynccontextmanager
    async def fresh(self) -> AsyncGenerator[tuple[DocumentStore, Put], None]:
        used: set[str] = set()

        async def put(
            database: str | None, collection: str, documents: Sequence[Mapping[str, Any]]
        ) -> None:
            chosen = client[database] if database else client.get_default_database()
            used.add(chosen.name)
            await chosen[collection].insert_many(deepcopy(list(documents)))

        store = MongoDocuments(self.url)
        async with AsyncMongoClient[dict[str, Any]](self.url, timeoutMS=20_000) as client:
            try:
                yield store, put
            finally:
                await store.aclose()
                for name in used:
                    await client.drop_database(name)


class TestDocuments(OverTcp):
    names = ("a_b", "Users")  # nx-27017 knows no others

    @pytest.fixture(autouse=True)
    def _server(self, mongo_url: str) -> None:
        self.url = mongo_url


# A MongoDB on loopback that may be written to, if there is one.
if real := os.environ.get("TURNLOOM_TEST_MONGO_URL"):

    class TestRealServer(OverTcp):
        url = urlsplit(real)._replace(path="/turnloom_contract_default").geturl()

        async def test_the_plan_is_one_walk_along_the_index(self) -> None:
            async with self.fresh() as (store, put):
                await put(None, "users", [{"key": str(n)} for n in range(1000)])
                await store.index(lookup())
                async with AsyncMongoClient[dict[str, Any]](self.url) as client:
                    users = client.get_default_database()["users"]
                    cursor = users.find(reading.condition(lookup("7")), sort=reading.NEWEST)
                    explained = await cursor.explain()
            assert "IXSCAN" in str(explained["queryPlanner"]["winningPlan"])
            assert "'SORT'" not in str(explained["queryPlanner"]["winningPlan"])
            assert explained["executionStats"]["totalDocsExamined"] == 1


class Documents:
    """What a query gives, one by one."""

    def __init__(self, found: Iterable[dict[str, Any]]) -> None:
        self._found = found

    async def __aenter__(self) -> AsyncIterator[dict[str, Any]]:
        return self._each()

    async def __aexit__(self, *_: object) -> None: ...

    async def _each(self) -> AsyncIterator[dict[str, Any]]:
        for document in self._found:
            yield document


class Face:
    """mongomock with the asynchronous face of PyMongo, as far as the adapter looks at it."""

    def __init__(self, inner: Any, parent: Any = None) -> None:
        self._inner = inner
        self.database = parent

    def __getitem__(self, name: str) -> "Face":
        return Face(self._inner[name], self)

    def get_default_database(self) -> "Face":
        return self["app"]

    async def list_collection_names(self) -> list[str]:
        return self._inner.list_collection_names()

    def find(self, *args: Any, **options: Any) -> Documents:
        return Documents(self._inner.find(*args, **options))

    async def create_index(self, *args: Any) -> None:
        self._inner.create_index(*args)

    async def close(self) -> None:
        self._inner.close()


class TestMeaning(DocumentStoreContract):
    """mongomock knows MongoDB's semantics better than any server that is to be had here."""

    @asynccontextmanager
    async def fresh(self) -> AsyncGenerator[tuple[DocumentStore, Put], None]:
        async def put(
            database: str | None, collection: str, documents: Sequence[Mapping[str, Any]]
        ) -> None:
            inner[database or "app"][collection].insert_many(deepcopy(list(documents)))

        inner = mongomock.MongoClient()
        store = MongoDocuments("mongodb://127.0.0.1/app")
        store._client = Face(inner)
        yield store, put
        await store.aclose()


async def test_the_index_has_the_key_and_then_the_newest() -> None:
    inner = mongomock.MongoClient()
    inner["app"]["users"].insert_one({"key": "x"})
    store = MongoDocuments("mongodb://127.0.0.1/app")
    store._client = Face(inner)
    await store.index(lookup(key="a.b"))
    keys = [index["key"] for index in inner["app"]["users"].index_information().values()]
    assert keys == [[("_id", 1)], [("a.b", 1), ("_id", -1)]]


async def test_an_indexed_lookup_reads_no_other_document(mongo_url: str) -> None:
    store = MongoDocuments(mongo_url)
    async with AsyncMongoClient[dict[str, Any]](mongo_url, timeoutMS=20_000) as client:
        users = client.get_default_database()["users"]
        await users.insert_many([{"a": {"b": str(n)}} for n in range(1000)])
        wanted = lookup("7", "a.b")
        assert "SCAN users" in await plan(users, wanted)
        await store.index(wanted)
        assert "USING INDEX idx_users_a_b" in await plan(users, wanted)
        found = await store.newest(wanted)
        assert found is not None and found["a"] == {"b": "7"}
    await store.aclose()


async def plan(collection: Any, wanted: Lookup) -> str:
    """How nx-27017 looks for the key; it explains no more than that."""
    cursor = collection.find({wanted.key: wanted.value}, sort=reading.NEWEST)
    return str((await cursor.explain())["queryPlanner"]["winningPlan"])
