"""Notices between processes: after the commit, few of them, and none that is needed."""

from contextlib import aclosing

import anyio
import psycopg
from anyio.abc import ByteStream

from tests.adapters.postgres.test_pgbouncer import TALK
from tests.adapters.postgres.test_store_mistakes import setting
from tests.adapters.postgres.test_store_trouble import PATIENCE, opened, pytestmark
from tests.adapters.postgres.test_trouble import execute
from tests.support.loopback import Relay, listening
from tests.support.servers import PostgresServer
from turnloom import Loom
from turnloom.adapters.postgres import PostgresStore
from turnloom.adapters.postgres.signals import INTERVAL
from turnloom.testing.contracts import CODEC
from turnloom.testing.contracts.facts import events, key, until

__all__ = ["pytestmark"]

# What stands before PostgreSQL's own function for sessions that look here first. It keeps what it
# is called with, and the transaction if that has written something.
OWN = """
    CREATE TABLE notices (topics text, transaction xid8);
    CREATE FUNCTION pg_notify(channel text, topics text) RETURNS void LANGUAGE plpgsql AS $$
    DECLARE
        writes xid8 := pg_current_xact_id_if_assigned();
    BEGIN
        INSERT INTO notices VALUES (topics, writes);
        IF topics LIKE 'echo %' THEN
            PERFORM pg_catalog.pg_notify(channel, topics);
        END IF;
    END $$"""


async def noting(url: str) -> str:
    """The URL of a store whose notices are kept, and none is passed on but to itself."""
    await execute(url, OWN)
    return setting(url, search_path="public,pg_catalog")


async def test_notices_are_sent_after_the_commit_and_one_per_interval(postgres_url: str) -> None:
    """Inside the transaction of an append, one would take a lock for the whole server."""
    began = anyio.current_time()
    async with opened(await noting(postgres_url)) as store, anyio.create_task_group() as tasks:
        for n in range(200):
            tasks.start_soon(store.log.append, key(f"r{n}"), events(f"r{n}", 1), 0)
    most = (anyio.current_time() - began) / INTERVAL + 1
    with psycopg.connect(postgres_url) as server:
        found = server.execute("SELECT topics, transaction FROM notices").fetchall()
    assert not [transaction for _, transaction in found if transaction is not None]
    assert 0 < len(found) <= most
    told = {word for topics, _ in found for word in topics.split()}
    assert len(told) == 201, "each run, and that there is something new"


async def test_a_poll_finds_what_no_notice_told(postgres_url: str) -> None:
    """The listener hears itself, and nothing of what others append."""
    url = await noting(postgres_url)
    async with opened(url) as store, opened(url) as other:
        await store.log.append(key("a"), events("a", 1), 0)
        with anyio.fail_after(PATIENCE):
            async with aclosing(other.log.subscribe(key("a"))) as followed:
                assert (await anext(followed)).seq == 1
                await until(other._signals._hears.is_set)
                for n in (1, 2):  # the first of them may be found as the listener connects
                    await store.log.append(key("a"), events("a", 1, n), n)
                    assert (await anext(followed)).seq == n + 1


async def test_an_app_listens_at_the_url_that_is_set(postgres_url: str) -> None:
    connected = anyio.Event()

    async def note(client: ByteStream) -> None:
        connected.set()
        await client.aclose()

    async with listening(note) as port:
        direct = f"postgresql://127.0.0.1:{port}/nowhere"
        async with Loom(store=postgres_url, listen_url=direct) as app:
            await app.start(TALK)
            with anyio.fail_after(PATIENCE):
                await connected.wait()


class Mute(Relay):
    """It swallows the first statement that listens, and notes the next one."""

    def __init__(self, port: int) -> None:
        super().__init__(port)
        self.swallowed = False
        self.again = anyio.Event()

    async def _pump(self, source: ByteStream, target: ByteStream) -> None:
        async for data in source:
            if b"LISTEN" not in data:
                await target.send(data)
            elif self.swallowed:
                self.again.set()
            else:
                self.swallowed = True


async def test_a_listener_that_gets_no_answer_connects_again(
    postgres_server: PostgresServer, postgres_url: str
) -> None:
    mute = Mute(postgres_server.port)
    async with listening(mute) as port:
        direct = postgres_url.replace(f":{postgres_server.port}/", f":{port}/")
        store = PostgresStore(postgres_url, CODEC, timeout=1.0, listen_url=direct)
        async with aclosing(store), aclosing(store.log.subscribe(key("a"))) as followed:
            await store.log.append(key("a"), events("a", 1), 0)
            assert (await anext(followed)).seq == 1
            with anyio.fail_after(PATIENCE):
                await mute.again.wait()
