"""A store in PostgreSQL whose URL, server or rights are wrong, as people see it."""

import logging
from collections.abc import Generator
from contextlib import aclosing
from urllib.parse import quote

import anyio
import psycopg
import pytest
from anyio import to_thread
from psycopg.sql import SQL, Identifier

from tests.adapters.postgres.test_store_trouble import PATIENCE, STOP, complaint, opened, role
from tests.adapters.postgres.test_trouble import execute
from tests.support.servers import PostgresServer, free_port
from turnloom import Loom
from turnloom.adapters.postgres import PostgresStore
from turnloom.adapters.postgres.signals import RECONNECT
from turnloom.errors import StoreUnavailable, UsageError
from turnloom.testing.contracts import CODEC
from turnloom.testing.contracts.facts import TENANT, events, key, until

pytestmark = pytest.mark.doors


def setting(url: str, **values: str) -> str:
    """A URL whose sessions have other settings."""
    options = " ".join(f"-c{name}={value}" for name, value in values.items())
    return f"{url}?options={quote(options)}"


async def works(url: str) -> None:
    """Use a store, and see what it holds."""
    async with opened(url) as store:
        async with store.claims.claim(key("a")) as fence:
            await store.log.append(key("a"), events("a", 2), 0, fence)
        arrivals = store.inbox.arrivals()
        await store.inbox.offer(key("b"), "1", STOP)
        with anyio.fail_after(PATIENCE):
            assert await anext(arrivals) == key("b")
        assert [*await store.log.read(key("a"))] == events("a", 2)
        await store.inbox.offer(key("a"), "a/2", STOP)
        assert not await store.inbox.pending(key("a")), "its event is in the log"
        assert len(await store.log.runs(TENANT, 5)) == 1


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1"])
async def test_a_database_that_cannot_hold_all_text(
    postgres_server: PostgresServer, encoding: str
) -> None:
    name = f"in_{encoding.lower()}"
    made = f"CREATE DATABASE {name} ENCODING '{encoding}' LOCALE 'C' TEMPLATE template0"
    await execute(postgres_server.url(), made)
    url = postgres_server.url(name)
    assert encoding in await complaint(url)
    async with opened(url) as store:
        with pytest.raises(StoreUnavailable) as raised:
            [step async for step in store.migrator.migrate()]
    assert encoding in str(raised.value)
    with psycopg.connect(url) as connection:
        assert not connection.execute(
            "SELECT FROM pg_tables WHERE tablename = 'turnloom_schema'"
        ).fetchall()


@pytest.mark.parametrize(
    "settings",
    [
        {"DateStyle": "German", "TimeZone": "Asia/Tokyo", "IntervalStyle": "iso_8601"},
        {"bytea_output": "escape", "client_encoding": "LATIN1"},
        {"standard_conforming_strings": "off", "escape_string_warning": "off"},
        {"default_transaction_isolation": "serializable"},
        {"idle_session_timeout": "20", "idle_in_transaction_session_timeout": "2000"},
    ],
    ids=lambda settings: next(iter(settings)),
)
async def test_settings_of_a_server_that_do_no_harm(
    postgres_url: str, settings: dict[str, str]
) -> None:
    await works(setting(postgres_url, **settings))


async def test_settings_of_a_server_that_stop_it(postgres_url: str) -> None:
    await works(postgres_url)
    async with opened(setting(postgres_url, default_transaction_read_only="on")) as store:
        assert await store.log.ends(key("a"))
        with pytest.raises(StoreUnavailable) as raised:
            await store.log.append(key("a"), events("a", 1, 2), 2)
    assert "primary" in str(raised.value)
    await execute(
        postgres_url,
        """CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            PERFORM pg_sleep(60); RETURN NEW; END $$;
        CREATE TRIGGER slow BEFORE INSERT ON turnloom_batches
        FOR EACH ROW EXECUTE FUNCTION slow()""",
    )
    async with opened(setting(postgres_url, statement_timeout="100")) as store:
        with pytest.raises(StoreUnavailable) as raised:
            await store.log.append(key("b"), events("b", 1), 0)
    assert "statement_timeout" in str(raised.value)
    async with opened(postgres_url) as store:
        assert await store.log.ends(key("b")) is None


async def test_a_schema_in_the_url(postgres_url: str) -> None:
    url = setting(postgres_url, search_path="mine")
    assert "CREATE SCHEMA" in await complaint(url)
    await execute(postgres_url, "CREATE SCHEMA mine")
    await works(url)
    await works(postgres_url)  # the same database, and another store


async def test_tables_of_another_user(postgres_url: str) -> None:
    await works(postgres_url)
    url = await role(postgres_url, "stranger")
    assert "GRANT" in await complaint(url)
    await execute(
        postgres_url,
        "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO stranger;"
        "GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO stranger",
    )
    async with opened(url) as store:
        await store.log.append(key("b"), events("b", 1), 0)


async def test_tables_that_are_not_complete(postgres_url: str) -> None:
    await works(postgres_url)
    await execute(postgres_url, "ALTER TABLE turnloom_schema RENAME TO elsewhere")
    assert "backup" in await complaint(postgres_url)
    await execute(postgres_url, "DROP TABLE IF EXISTS turnloom_schema")
    await execute(postgres_url, "ALTER TABLE elsewhere RENAME TO turnloom_schema")
    await execute(postgres_url, "DROP TABLE turnloom_runs CASCADE")
    assert "backup" in await complaint(postgres_url)


@pytest.mark.parametrize("version", [1, 99])
async def test_a_worker_stops_at_tables_of_another_release(postgres_url: str, version: int) -> None:
    await works(postgres_url)
    await execute(postgres_url, f"UPDATE turnloom_schema SET version = {version}")
    async with Loom(store=postgres_url, scheduler="procrastinate") as app:
        with anyio.fail_after(PATIENCE), pytest.raises(StoreUnavailable) as raised:
            await app.serving.work()
    assert f"schema {version};" in str(raised.value)


async def test_a_user_who_may_not_connect(postgres_server: PostgresServer) -> None:
    with postgres_server.database() as name:
        owner = postgres_server.url(name)
        url = await role(owner, "outside")
        with psycopg.connect(owner, autocommit=True) as connection:
            revoked = SQL("REVOKE CONNECT ON DATABASE {} FROM PUBLIC").format(Identifier(name))
            connection.execute(revoked)
            try:
                assert "GRANT CONNECT" in await complaint(url)
            finally:
                connection.execute(
                    SQL("GRANT CONNECT ON DATABASE {} TO PUBLIC").format(Identifier(name))
                )


async def test_remedies_of_connecting(postgres_server: PostgresServer) -> None:
    server = postgres_server
    assert "sslmode" in await complaint(server.url() + "?sslmode=require")
    assert "%40" in await complaint(server.url(password="hunter2"))
    assert "PGPASSWORD" in await complaint(f"postgresql://postgres@127.0.0.1:{server.port}/x")
    assert "the port" in await complaint(f"postgresql://postgres@127.0.0.1:{free_port()}/x")
    with pytest.raises(UsageError) as raised:
        PostgresStore(server.url() + "?nonsense=1", CODEC)
    assert "sslmode" in str(raised.value)


async def test_a_listener_that_cannot_connect(
    postgres_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    """It is said once; events of other processes arrive all the same."""
    wrong = f"postgresql://postgres:hunter2@127.0.0.1:{free_port()}/x"
    deaf = PostgresStore(postgres_url, CODEC, listen_url=wrong)
    with caplog.at_level(logging.WARNING, "turnloom.postgres"), anyio.fail_after(PATIENCE):
        async with opened(postgres_url) as store, aclosing(deaf):
            await store.log.append(key("a"), events("a", 1), 0)
            async with aclosing(deaf.log.subscribe(key("a"))) as followed:
                assert (await anext(followed)).seq == 1
                await until(lambda: "listen_url" in caplog.text)
                await anyio.sleep(2 * RECONNECT)
                await store.log.append(key("a"), events("a", 1, 1), 1)
                assert (await anext(followed)).seq == 2
    assert caplog.text.count("listen_url") == 1
    assert "hunter2" not in caplog.text
    with pytest.raises(UsageError):
        PostgresStore(postgres_url, CODEC, listen_url="postgresql://me:secret/w@h/db")


class ReachableServer(PostgresServer):
    """It listens at all addresses of this machine, and at a socket."""

    def command(self) -> list[str]:
        self.folder.chmod(0o777)
        return [
            *super().command(),
            *("-c", f"unix_socket_directories={self.folder}"),
            *("-c", "listen_addresses=127.0.0.1,::1"),
        ]

    def answers(self) -> bool:
        """It may let no one in but by its socket."""
        try:
            psycopg.connect(by_socket(self), connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True


def by_socket(server: PostgresServer) -> str:
    """The URL of the socket of a server."""
    secret = server.url().partition("@127")[0]
    folder = quote(str(server.folder), safe="")
    return f"{secret}@/postgres?host={folder}&port={server.port}"


@pytest.fixture
def reachable() -> Generator[PostgresServer]:
    server = ReachableServer()
    try:
        server.start()
        yield server
    finally:
        server.discard()


async def test_other_ways_to_a_server(reachable: PostgresServer) -> None:
    await works(by_socket(reachable))
    url = reachable.url().replace("127.0.0.1", "[::1]")
    async with opened(f"{url}?application_name=mine") as store:
        assert await store.log.ends(key("a"))


async def test_a_server_that_requires_tls(reachable: PostgresServer) -> None:
    rules = "hostssl all all all scram-sha-256\nlocal all all scram-sha-256\n"
    await anyio.Path(reachable.data / "pg_hba.conf").write_text(rules)
    await to_thread.run_sync(reachable.stop)
    await to_thread.run_sync(reachable.start)
    assert "sslmode=require" in await complaint(reachable.url())
