"""MongoDB that is down, silent, killed, strange: a sentence in time, and no password in it."""

import signal
from collections.abc import Generator
from typing import Any

import anyio
import pytest
from anyio import to_thread
from pymongo import AsyncMongoClient

from tests.support.loopback import Relay, listening, refuse_passwords, stay_silent
from tests.support.missing import refused_without
from tests.support.raising import raising
from tests.support.servers import MongoServer, free_port
from turnloom.adapters.mongo import MongoDocuments
from turnloom.adapters.mongo.documents import locate
from turnloom.errors import DocumentsUnavailable, UsageError
from turnloom.testing.contracts.documents import lookup

pytestmark = pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")  # see conftest

# Seconds after which a server is given up that never answers, and one that answers at times; and in
# which nothing here takes longer.
TIMEOUT, LONG = 0.5, 2.0
PATIENCE = 60.0
PASSWORD = "s3cret"


async def complaint(store: MongoDocuments) -> str:
    """What a lookup is refused with, in time."""
    with anyio.fail_after(PATIENCE), pytest.raises(DocumentsUnavailable) as raised:
        await store.newest(lookup())
    chain: list[BaseException | None] = [raised.value]
    while chain[-1] is not None:
        assert PASSWORD not in str(chain[-1])
        chain.append(chain[-1].__cause__)
    return str(raised.value)


async def add(url: str, documents: list[dict[str, Any]]) -> None:
    async with AsyncMongoClient[dict[str, Any]](url, timeoutMS=20_000) as client:
        await client.get_default_database()["users"].insert_many(documents)


@pytest.fixture(scope="module")
def own_server() -> Generator[MongoServer, None, None]:
    server = MongoServer()
    try:
        server.start()
        yield server
    finally:
        server.discard()


async def test_no_server() -> None:
    port = free_port()
    store = MongoDocuments(f"mongodb://me:{PASSWORD}@127.0.0.1:{port}/app", TIMEOUT)
    said = await complaint(store)
    assert f"127.0.0.1:{port}" in said
    with pytest.raises(DocumentsUnavailable):
        await store.index(lookup())
    await store.aclose()


async def test_a_server_that_never_answers(strict_loop: None) -> None:
    async with listening(stay_silent) as port:
        store = MongoDocuments(f"mongodb://me:{PASSWORD}@127.0.0.1:{port}/app", TIMEOUT)
        said = await complaint(store)
        assert f"127.0.0.1:{port}" in said
        with anyio.fail_after(PATIENCE), pytest.raises(DocumentsUnavailable):
            await store.index(lookup())
        with anyio.fail_after(PATIENCE):
            await store.aclose()


async def test_a_wrong_password() -> None:
    async with listening(refuse_passwords) as port:
        store = MongoDocuments(f"mongodb://me:{PASSWORD}@127.0.0.1:{port}/app")
        said = await complaint(store)
        for value in (f"127.0.0.1:{port}", "'users'", "Authentication failed."):
            assert value in said
        await store.aclose()


async def test_a_server_that_speaks_something_else(mongo_server: MongoServer) -> None:
    """nx-27017 knows no passwords, and what it says instead makes the driver stumble."""
    store = MongoDocuments(f"mongodb://me:{PASSWORD}@127.0.0.1:{mongo_server.port}/app")
    await complaint(store)
    await store.aclose()


@pytest.mark.doors
async def test_a_server_that_falls_silent(mongo_server: MongoServer, mongo_url: str) -> None:
    await add(mongo_url, [{"key": "x"}])
    relay = Relay(mongo_server.port)
    async with listening(relay) as port:
        store = MongoDocuments(mongo_url.replace(f":{mongo_server.port}/", f":{port}/"), LONG)
        assert await store.newest(lookup())
        relay.muted = True
        for _ in range(2):
            assert f"127.0.0.1:{port}" in await complaint(store)
        with anyio.fail_after(PATIENCE), pytest.raises(DocumentsUnavailable):
            await store.index(lookup())
        relay.muted = False
        await answered(store)
        await store.aclose()


@pytest.mark.doors
async def test_a_server_that_is_killed_and_comes_back(own_server: MongoServer) -> None:
    await add(own_server.url("app"), [{"key": "x"}])
    store = MongoDocuments(own_server.url("app"), LONG)
    async with anyio.create_task_group() as tasks:
        for _ in range(5):
            tasks.start_soon(store.newest, lookup())
    for _ in range(2):
        await to_thread.run_sync(own_server.stop, signal.SIGKILL)
        assert f"127.0.0.1:{own_server.port}" in await complaint(store)
        await to_thread.run_sync(own_server.start)
        await answered(store)
    await store.aclose()


async def answered(store: MongoDocuments) -> None:
    """Wait until the server is found again: the driver looks for it every half second."""
    with anyio.fail_after(PATIENCE):
        while True:
            try:
                assert await store.newest(lookup())
                return
            except DocumentsUnavailable:
                await anyio.sleep(0.05)


async def test_no_database_is_named(mongo_server: MongoServer) -> None:
    store = MongoDocuments(f"mongodb://127.0.0.1:{mongo_server.port}")
    with raising(UsageError, "`database_name`"):
        await store.newest(lookup())
    assert await store.newest(lookup(database="app")) is None
    await store.aclose()


@pytest.mark.parametrize(
    "url",
    [
        *("", "nonsense", f"mongodb://me:{PASSWORD}@", f"mongodb://me:{PASSWORD}/x@127.0.0.1"),
        *(f"mongodb://me:{PASSWORD}@127.0.0.1:port/app", f"mongodb://me:a:{PASSWORD}@h/app"),
    ],
)
def test_urls_that_are_none(url: str) -> None:
    with pytest.raises(UsageError) as raised:
        MongoDocuments(url)
    assert PASSWORD not in str(raised.value)


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("mongodb://a,b:27018,[::1]:5/app", "a:27017, b:27018, [::1]:5"),
        ("mongodb://me:p%40w@a/app?replicaSet=r", "a:27017"),
        ("mongodb://%2Frun%2Fmongodb.sock/app", "/run/mongodb.sock"),
    ],
)
def test_where_a_url_points_to(url: str, place: str) -> None:
    assert str(locate(url)).endswith(f" {place}")


def test_the_extra_is_named_when_it_is_missing() -> None:
    said = str(refused_without("pymongo", "turnloom.adapters.mongo"))
    assert 'pip install "turnloom[mongo]"' in said
