"""PostgreSQL that is down, silent, killed, strange: a sentence in time, and no password in it."""

import signal
from collections.abc import Generator

import anyio
import pytest
from anyio import to_thread
from psycopg import AsyncConnection
from psycopg.sql import SQL

from tests.support.documents import into_postgres as add
from tests.support.loopback import Relay, listening, stay_silent
from tests.support.missing import refused_without
from tests.support.servers import PASSWORD, PostgresServer, free_port
from turnloom.adapters.postgres import PostgresDocuments, queries
from turnloom.adapters.postgres.faults import locate
from turnloom.errors import DocumentsUnavailable, UsageError
from turnloom.testing.contracts.documents import lookup
from turnloom.variables.ports import Lookup

# Seconds after which a server is given up that never answers, and one that answers at times; and in
# which nothing here takes longer.
TIMEOUT, LONG = 0.5, 2.0
PATIENCE = 60.0


async def complaint(store: PostgresDocuments, wanted: Lookup | None = None) -> str:
    """What a lookup is refused with, in time."""
    with anyio.fail_after(PATIENCE), pytest.raises(DocumentsUnavailable) as raised:
        await store.newest(wanted or lookup())
    chain: list[BaseException | None] = [raised.value]
    while chain[-1] is not None:
        assert PASSWORD not in str(chain[-1])
        chain.append(chain[-1].__cause__)
    return str(raised.value)


async def execute(url: str, statement: str) -> None:
    async with await AsyncConnection.connect(url, autocommit=True) as connection:
        await connection.execute(SQL(statement))


@pytest.fixture(scope="module")
def own_server() -> Generator[PostgresServer, None, None]:
    server = PostgresServer()
    try:
        server.start()
        yield server
    finally:
        server.discard()


async def test_no_server() -> None:
    port = free_port()
    store = PostgresDocuments(f"postgresql://me:p%20w@127.0.0.1:{port}/db", TIMEOUT)
    said = await complaint(store)
    assert f"127.0.0.1:{port}" in said
    with pytest.raises(DocumentsUnavailable):
        await store.index(lookup())
    await store.aclose()


async def test_a_server_that_never_answers(strict_loop: None) -> None:
    async with listening(stay_silent) as port:
        store = PostgresDocuments(f"postgresql://me@127.0.0.1:{port}/db", TIMEOUT)
        said = await complaint(store)
        assert f"127.0.0.1:{port}" in said and "0.5 s" in said
        with anyio.fail_after(PATIENCE), pytest.raises(DocumentsUnavailable):
            await store.index(lookup())
        await store.aclose()


async def test_a_wrong_password(postgres_server: PostgresServer) -> None:
    store = PostgresDocuments(postgres_server.url(password="wrong horse"))
    said = await complaint(store)
    assert "password authentication failed" in said
    assert "wrong horse" not in said
    await store.aclose()


async def test_a_missing_database(postgres_server: PostgresServer) -> None:
    store = PostgresDocuments(postgres_server.url("nowhere"))
    assert 'database "nowhere" does not exist' in await complaint(store)
    await store.aclose()


@pytest.mark.doors
async def test_a_server_that_falls_silent(
    postgres_server: PostgresServer, postgres_url: str
) -> None:
    await add(postgres_url, None, "users", [{"key": "x"}])
    relay = Relay(postgres_server.port)
    async with listening(relay) as port:
        url = postgres_url.replace(f":{postgres_server.port}/", f":{port}/")
        store = PostgresDocuments(url, LONG)
        assert await store.newest(lookup())
        relay.muted = True
        for _ in range(2):
            assert "2 s" in await complaint(store)
        relay.muted = False
        assert await store.newest(lookup())
        await store.aclose()


async def test_a_server_that_is_killed_and_comes_back(own_server: PostgresServer) -> None:
    await add(own_server.url(), None, "users", [{"key": "x"}])
    store = PostgresDocuments(own_server.url())
    async with anyio.create_task_group() as tasks:
        for _ in range(5):
            tasks.start_soon(store.newest, lookup())
    await to_thread.run_sync(own_server.stop, signal.SIGQUIT)
    assert f"127.0.0.1:{own_server.port}" in await complaint(store)
    await to_thread.run_sync(own_server.start)
    assert await store.newest(lookup())
    await to_thread.run_sync(own_server.stop, signal.SIGQUIT)
    await to_thread.run_sync(own_server.start)
    with anyio.fail_after(PATIENCE):
        assert await store.newest(lookup())
    await store.aclose()


async def test_a_locked_table(postgres_url: str) -> None:
    await add(postgres_url, None, "users", [{"key": "x"}])
    store = PostgresDocuments(postgres_url, LONG)
    async with await AsyncConnection.connect(postgres_url) as connection:
        await connection.execute("LOCK TABLE users IN ACCESS EXCLUSIVE MODE")
        assert "2 s" in await complaint(store)
    assert await store.newest(lookup())
    await store.aclose()


async def test_tables_that_are_no_collections(postgres_url: str) -> None:
    store = PostgresDocuments(postgres_url)
    for columns in ("id int", "doc jsonb", "id int, doc text", "id int, doc json"):
        await execute(postgres_url, f"CREATE TABLE users ({columns})")
        said = await complaint(store)
        assert "'users'" in said and "127.0.0.1:" in said and "jsonb" in said
        await execute(postgres_url, "DROP TABLE users")
    await execute(
        postgres_url, """CREATE VIEW users AS SELECT 1 AS id, '{"key": "x"}'::jsonb AS doc"""
    )
    assert await store.newest(lookup()) == {"key": "x"}
    await store.aclose()


async def test_a_table_that_may_not_be_read(
    postgres_server: PostgresServer, postgres_url: str
) -> None:
    await add(postgres_url, None, "users", [{"key": "x"}])
    await execute(postgres_url, "CREATE ROLE guest LOGIN PASSWORD 'guest'")
    url = f"postgresql://guest:guest@127.0.0.1:{postgres_url.rpartition(':')[2]}"
    store = PostgresDocuments(url)
    assert "permission denied for table users" in await complaint(store)
    await store.aclose()


@pytest.mark.parametrize(
    "url",
    [
        *("", "nonsense", f"postgresql://me:{PASSWORD}@[::1/db", "postgresql://h/?pass=secret"),
        # The password is not encoded.
        *("postgresql://me:secret/w@h/db", "postgresql://me:p@secret@h/db"),
        *("postgresql://me:p@secret@h,i/db", "postgresql://me:12/secret@h/db"),
    ],
)
def test_urls_that_are_none(url: str) -> None:
    if not url:
        assert str(locate(url, "documents")).endswith(" localhost:5432")
        return
    with pytest.raises(UsageError) as raised:
        PostgresDocuments(url)
    assert PASSWORD not in str(raised.value)
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize("key", ["key", "a.b", "größe.it's 50%"])
async def test_an_indexed_lookup_reads_no_other_document(postgres_url: str, key: str) -> None:
    first, *rest = key.split(".")
    documents = [{first: {rest[0]: str(n)} if rest else str(n)} for n in range(5000)]
    await add(postgres_url, None, "users", documents)
    await execute(postgres_url, "ANALYZE users")
    store = PostgresDocuments(postgres_url)
    wanted = lookup("7", key)
    assert "Seq Scan" in await plan(postgres_url, wanted) or "users_pkey" in await plan(
        postgres_url, wanted
    )
    await store.index(wanted)
    await execute(postgres_url, "ANALYZE users")
    text = await plan(postgres_url, wanted)
    assert "Index Scan using turnloom_" in text
    assert "Sort" not in text
    assert await store.newest(wanted) == documents[7]
    await store.aclose()


async def plan(url: str, wanted: Lookup) -> str:
    async with await AsyncConnection.connect(url) as connection:
        cursor = await connection.execute(SQL("EXPLAIN ") + queries.newest(wanted))
        return "\n".join(row[0] for row in await cursor.fetchall())


async def test_a_long_key_can_be_written_beside_an_index(postgres_url: str) -> None:
    """An index of whole values would refuse the user's own insert."""
    texts = ["".join(chr(33 + (n * n + m) % 90) for n in range(100_000)) for m in range(2)]
    await add(postgres_url, None, "users", [{"key": "x"}])
    store = PostgresDocuments(postgres_url)
    await store.index(lookup())
    await add(postgres_url, None, "users", [{"key": text, "n": 1} for text in texts])
    for text in texts:
        assert await store.newest(lookup(text)) == {"key": text, "n": 1}
    await store.aclose()


def test_the_extra_is_named_when_it_is_missing() -> None:
    said = str(refused_without("psycopg", "turnloom.adapters.postgres"))
    assert 'pip install "turnloom[postgres]"' in said
