"""A store in PostgreSQL whose server, network or neighbours behave badly."""

import asyncio
import logging
import signal
from collections.abc import AsyncGenerator, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, asynccontextmanager
from datetime import timedelta

import anyio
import psycopg
import pytest
from anyio import to_thread
from anyio.abc import ByteStream
from psycopg.sql import SQL, Literal

from tests.adapters.postgres.test_trouble import execute
from tests.support.loopback import listening, stay_silent
from tests.support.pooler import pooled
from tests.support.servers import PASSWORD, PostgresServer, free_port
from turnloom.adapters.postgres import PostgresStore
from turnloom.adapters.postgres.connections import MAX_CONNECTIONS, Connections
from turnloom.adapters.postgres.database import Database
from turnloom.adapters.postgres.schema import schema_of
from turnloom.board.events import ArtifactPublished
from turnloom.errors import LeaseLost, StoreUnavailable
from turnloom.log.events import CancelRequested, RunFinished
from turnloom.runtime.logic import codec
from turnloom.runtime.spec import Close, Removal, Stop
from turnloom.testing import FakeClock
from turnloom.testing.contracts import CODEC
from turnloom.testing.contracts.artifacts.samples import artifact
from turnloom.testing.contracts.facts import BEGINNING, TENANT, event, events, key, started, until

pytestmark = pytest.mark.doors

PATIENCE = 60.0
STOP = Stop("ann", "enough")
ASKED = "(SELECT calls FROM pg_stat_user_functions WHERE funcname = 'turnloom_has')"
SLEEPING = "SELECT 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep'"


@asynccontextmanager
async def opened(url: str, **settings: float) -> AsyncGenerator[PostgresStore, None]:
    async with aclosing(PostgresStore(url, CODEC, **settings)) as store:  # type: ignore[arg-type]
        yield store


@pytest.fixture
def own_server() -> Generator[PostgresServer, None, None]:
    server = PostgresServer()
    try:
        server.start()
        yield server
    finally:
        server.discard()


async def complaint(url: str, **settings: float) -> str:
    """What a store says when it is used, in time and without a password."""
    async with opened(url, **settings) as store:
        with anyio.fail_after(PATIENCE), pytest.raises(StoreUnavailable) as raised:
            await store.log.append(key("a"), events("a", 1), 0)
        with anyio.fail_after(PATIENCE), pytest.raises(StoreUnavailable):
            await store.log.runs(TENANT, 5)
    said = str(raised.value)
    assert PASSWORD not in said and "hunter2" not in said
    return said


async def role(url: str, name: str, rights: str = "") -> str:
    """The URL of a user of the database."""
    await execute(url, f"CREATE ROLE {name} LOGIN PASSWORD 'hunter2' {rights}")
    return f"postgresql://{name}:hunter2@{url.rpartition('@')[2]}"


async def test_what_is_wrong_is_said_with_a_remedy(
    postgres_server: PostgresServer, postgres_url: str
) -> None:
    server = postgres_server
    port = free_port()
    said = await complaint(f"postgresql://me:hunter2@127.0.0.1:{port}/db")
    assert f"127.0.0.1:{port}" in said and "Check that the server runs" in said
    said = await complaint(server.url(password="hunter2"))
    assert "password authentication failed" in said and "in the URL" in said
    assert 'database "nowhere" does not exist' in await complaint(server.url("nowhere"))
    async with listening(stay_silent) as silent:
        url = f"postgresql://me:hunter2@127.0.0.1:{silent}/db"
        assert "0.3 s" in await complaint(url, timeout=0.3)
    await execute(postgres_url, "REVOKE CREATE ON SCHEMA public FROM PUBLIC")
    said = await complaint(await role(postgres_url, "onlooker"))
    assert "permission denied" in said and "GRANT" in said


async def make_first_version(url: str) -> None:
    """Make the tables of the first release."""
    first = schema_of("store").steps[0][1].decode()
    made = "CREATE TABLE turnloom_schema (part text PRIMARY KEY, version integer NOT NULL)"
    await execute(url, made)
    await execute(url, first)
    await execute(url, "INSERT INTO turnloom_schema VALUES ('store', 1)")


async def test_an_earlier_schema_is_refused_until_it_is_migrated(postgres_url: str) -> None:
    await make_first_version(postgres_url)
    assert "turnloom store migrate" in await complaint(postgres_url)
    async with opened(postgres_url) as store:
        taken = [each.version async for each in store.migrator.migrate()]
        assert taken == [*range(2, schema_of("store").version + 1)]
        await store.log.append(key("a"), events("a", 1), 0)


async def test_a_driver_stops_when_the_schema_changes_under_it(postgres_url: str) -> None:
    async with opened(postgres_url) as store:
        async with store.claims.claim(key("a")):
            pass
        await execute(postgres_url, "UPDATE turnloom_schema SET version = 99")
        with pytest.raises(StoreUnavailable) as raised:
            async with store.claims.claim(key("a")):
                pass
    assert "99" in str(raised.value)


REFUSED = """
    CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
        'BEGIN RAISE EXCEPTION USING MESSAGE = NEW.version; END';
    CREATE TRIGGER refuse BEFORE UPDATE ON turnloom_schema FOR EACH ROW WHEN (NEW.version = 3)
        EXECUTE FUNCTION refuse();
"""


async def test_a_step_that_fails_leaves_those_before_and_nothing_of_itself(
    postgres_url: str,
) -> None:
    await make_first_version(postgres_url)
    await execute(postgres_url, REFUSED)
    async with opened(postgres_url) as store:
        taken: list[int] = []
        with pytest.raises(StoreUnavailable):
            async for each in store.migrator.migrate():
                taken.append(each.version)
        assert taken == [2]
        assert (await store.migrator.pending())[0].version == 3
        await execute(postgres_url, "DROP TRIGGER refuse ON turnloom_schema")
        assert (await anext(store.migrator.migrate())).version == 3


async def test_many_processes_set_a_database_up_at_once(postgres_url: str) -> None:
    async with anyio.create_task_group() as tasks:

        async def start(n: int) -> None:
            async with opened(postgres_url) as store:
                await store.log.append(key(f"run{n}"), events(f"run{n}", 1), 0)

        for n in range(8):
            tasks.start_soon(start, n)
    async with opened(postgres_url) as store:
        assert len(await store.log.runs(TENANT, 20)) == 8


class Cut:
    """Passes everything on, and cuts a connection at an append: before it reaches the server, or
    before its answer comes back."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.before: bool | None = None
        self.cuts = 0

    async def __call__(self, client: ByteStream) -> None:
        async with (
            client,
            await anyio.connect_tcp("127.0.0.1", self.port) as server,
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(self._pump, server, client)
            try:
                async for data in client:
                    is_append = b"turnloom_append" in data and self.before is not None
                    if is_append and self.before:
                        self.cut()
                        break
                    await server.send(data)
                    if is_append:
                        await anyio.sleep(0.2)  # the server commits, and its answer is dropped
                        self.cut()
                        break
            except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                pass
            tasks.cancel_scope.cancel()

    def cut(self) -> None:
        self.cuts += 1
        self.before = None

    async def _pump(self, source: ByteStream, target: ByteStream) -> None:
        try:
            async for data in source:
                if self.before is not False:
                    await target.send(data)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            return


@pytest.mark.parametrize("before", [True, False])
async def test_a_connection_is_cut_in_an_append(
    postgres_server: PostgresServer, postgres_url: str, before: bool
) -> None:
    """It is stored once, whether the first attempt reached the server or not."""
    cut = Cut(postgres_server.port)
    async with listening(cut) as port:
        url = postgres_url.replace(f":{postgres_server.port}/", f":{port}/")
        async with opened(url) as store, store.claims.claim(key("a")) as fence:
            await store.log.append(key("a"), events("a", 2), 0, fence)
            cut.before = before
            await store.log.append(key("a"), events("a", 2, 2), 2, fence)
            assert cut.cuts == 1
            await store.log.append(key("a"), events("a", 1, 4), 4, fence)
            assert list(await store.log.read(key("a"))) == events("a", 5)


async def test_a_server_that_restarts(own_server: PostgresServer) -> None:
    """Drives and followers outlive it."""
    seen: list[int] = []
    async with opened(own_server.url()) as store, opened(own_server.url()) as other:

        async def follow() -> None:
            async with aclosing(other.log.subscribe(key("a"))) as followed:
                async for event in followed:
                    seen.append(event.seq)
                    if event.seq == 3:
                        return

        async with store.claims.claim(key("a")) as fence:
            await store.log.append(key("a"), events("a", 1), 0, fence)
            assert await other.log.ends(key("a"))
            with anyio.fail_after(PATIENCE):
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(follow)
                    for position, how in enumerate((signal.SIGINT, signal.SIGQUIT), 1):
                        await to_thread.run_sync(own_server.stop, how)
                        async with anyio.create_task_group() as meanwhile:
                            meanwhile.start_soon(to_thread.run_sync, own_server.start)
                            batch = events("a", 1, position)
                            await store.log.append(key("a"), batch, position, fence)
    assert seen == [1, 2, 3]


async def test_a_server_that_stays_away(own_server: PostgresServer) -> None:
    """A statement is not repeated for ever."""
    database = Database(own_server.url(), 1.0, schema_of("store"), patience=0.5)
    await database.rows("SELECT 1")
    await to_thread.run_sync(own_server.stop)
    with anyio.fail_after(PATIENCE), pytest.raises(StoreUnavailable):
        await database.rows("SELECT 1")
    await database.aclose()


async def test_an_append_that_takes_too_long_is_given_up_and_stored_once(postgres_url: str) -> None:
    """A lock keeps its first attempt from ending; then all attempts end at once."""
    async with opened(postgres_url, timeout=0.3) as store:
        await store.log.append(key("a"), events("a", 1), 0)
        async with await psycopg.AsyncConnection.connect(postgres_url) as other:
            await other.execute("LOCK TABLE turnloom_ids IN ACCESS EXCLUSIVE MODE")
            batch = events("a", 2, 1)
            appending = asyncio.ensure_future(store.log.append(key("a"), batch, 1))
            await until_there(postgres_url, f"{WAITS} HAVING count(*) > 1")
            await other.rollback()
        with anyio.fail_after(PATIENCE):
            assert [*await appending] == batch
        assert [*await store.log.read(key("a"))] == events("a", 3)


END = """
    SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity
    WHERE wait_event_type = 'Lock' AND datname = current_database()"""


async def test_an_append_whose_session_is_ended_again_and_again(postgres_url: str) -> None:
    """It begins anew with another one, and is stored once."""
    async with opened(postgres_url, timeout=PATIENCE) as store:
        await store.log.append(key("a"), events("a", 1), 0)
        async with await psycopg.AsyncConnection.connect(postgres_url) as other:
            await other.execute("LOCK TABLE turnloom_ids IN ACCESS EXCLUSIVE MODE")
            batch = events("a", 2, 1)
            appending = asyncio.ensure_future(store.log.append(key("a"), batch, 1))
            for _ in range(3):
                await until_there(postgres_url, WAITS)
                await execute(postgres_url, END)
            await other.rollback()
        with anyio.fail_after(PATIENCE):
            assert [*await appending] == batch
        assert [*await store.log.read(key("a"))] == events("a", 3)


async def test_a_task_that_is_cancelled_as_the_server_stops_ends(
    own_server: PostgresServer,
) -> None:
    """It does not begin anew, as others do."""
    database = Database(own_server.url(), 20.0, schema_of("store"))
    await database.rows("SELECT 1")
    asking = asyncio.ensure_future(database.rows("SELECT pg_sleep(60)"))
    await until_there(own_server.url(), SLEEPING)
    with ThreadPoolExecutor() as thread:  # the loop waits, and the task learns of both at once
        thread.submit(own_server.stop, signal.SIGQUIT).result()
    asking.cancel()
    await asyncio.wait({asking}, timeout=PATIENCE)
    assert asking.cancelled()
    await database.aclose()


# A disk that is full when a table is written to.
FULL = """
    CREATE OR REPLACE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        RAISE EXCEPTION USING ERRCODE = '53100', MESSAGE = 'could not extend file';
    END $$;
    CREATE TRIGGER full_disk BEFORE INSERT OR UPDATE ON {table}
        FOR EACH ROW EXECUTE FUNCTION full_disk()"""


@pytest.mark.parametrize("table", ["batches", "ids", "artifacts", "terms", "inbox"])
async def test_a_full_disk(postgres_url: str, table: str) -> None:
    """An append, its artifacts and its mail are one transaction: nothing of it is stored, and the
    next attempt works once there is space again."""
    first = started("a", "shop", "ann", 0)
    made = event("a", 2, ArtifactPublished(artifact("x", run="a")))
    batch = [made, event("a", 3, CancelRequested("ann"), id="stop")]
    async with aclosing(PostgresStore(postgres_url, codec())) as store:
        await store.log.append(key("a"), [first], 0)
        await store.inbox.offer(key("a"), "stop", STOP)
        await execute(postgres_url, FULL.format(table=f"turnloom_{table}"))
        with pytest.raises(StoreUnavailable) as raised:
            await store.log.append(key("a"), batch, 1)
        assert "Free some space" in str(raised.value)
        await execute(postgres_url, f"DROP TRIGGER full_disk ON turnloom_{table}")
        assert [*await store.log.read(key("a"))] == [first]
        assert await store.inbox.pending(key("a")) == [("stop", STOP)]
        assert not await store.artifacts.find(TENANT, "x")
        await store.log.append(key("a"), batch, 1)
        assert not await store.inbox.pending(key("a"))
        assert len(await store.artifacts.find(TENANT, "x")) == 1


async def test_a_removal_that_fails_removes_nothing(postgres_url: str) -> None:
    """A run, what belongs to it and the record of its removal are one transaction."""
    made = event("a", 1, ArtifactPublished(artifact("x", run="a")))
    record = Removal(BEGINNING, "admin", "user 'ann'")
    async with aclosing(PostgresStore(postgres_url, codec())) as store:
        await store.log.append(key("a"), [made, event("a", 2, RunFinished())], 0)
        await execute(postgres_url, FULL.format(table="turnloom_removals"))
        with pytest.raises(StoreUnavailable):
            await store.pruner.remove(key("a"), record=record)
        assert len(await store.log.read(key("a"))) == 2
        assert len(await store.artifacts.find(TENANT, "x")) == 1
        await execute(postgres_url, "DROP TRIGGER full_disk ON turnloom_removals")
        assert await store.pruner.remove(key("a"), record=record)
        assert not await store.log.read(key("a"))
        assert [each.runs for each in await store.removals.recent(TENANT, 5)] == [1]


async def test_too_many_connections(postgres_url: str) -> None:
    await execute(postgres_url, "GRANT CREATE ON SCHEMA public TO PUBLIC")
    url = await role(postgres_url, "narrow", "CONNECTION LIMIT 1")
    async with opened(url) as store:
        async with anyio.create_task_group() as tasks:
            for n in range(20):  # they share the one connection that there is
                tasks.start_soon(store.log.append, key(f"r{n}"), events(f"r{n}", 1), 0)
        said = await complaint(url)
        assert "too many connections" in said and "CONNECTION LIMIT" in said


async def test_a_pooler_in_transaction_mode(
    postgres_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing depends on a session but listening, for which `listen_url` is named."""
    async with pooled(postgres_url) as (url, pooler), opened(url) as store, opened(url) as other:
        with anyio.fail_after(PATIENCE), caplog.at_level(logging.WARNING, "turnloom.postgres"):
            async with store.claims.claim(key("a")) as fence:
                for n in range(10):
                    await store.log.append(key("a"), events("a", 1, n), n, fence)
                seen = 0
                async with aclosing(other.log.subscribe(key("a"))) as followed:
                    async for event in followed:
                        seen = event.seq
                        if seen == 10:
                            await store.log.append(key("a"), events("a", 1, 10), 10, fence)
                        if seen == 11:
                            break
                await until(lambda: "listen_url" in caplog.text)
        assert pooler.transactions > 20
    caplog.clear()
    async with pooled(postgres_url) as (url, _):
        direct = PostgresStore(url, CODEC, listen_url=postgres_url)
        async with aclosing(direct), aclosing(direct.log.subscribe(key("a"))) as followed:
            assert (await anext(followed)).seq == 1
    assert "listen_url" not in caplog.text


async def test_a_dropped_listener_is_found_out(postgres_url: str) -> None:
    async with opened(postgres_url) as store, opened(postgres_url) as other:
        await store.log.append(key("a"), events("a", 1), 0)
        with anyio.fail_after(PATIENCE):
            async with aclosing(other.log.subscribe(key("a"))) as followed:
                assert (await anext(followed)).seq == 1
                for n in range(1, 4):
                    await execute(
                        postgres_url,
                        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                        "WHERE query LIKE 'LISTEN%' AND datname = current_database()",
                    )
                    await store.log.append(key("a"), events("a", 1, n), n)
                    assert (await anext(followed)).seq == n + 1


async def test_mail_that_is_committed_late_arrives(postgres_url: str) -> None:
    """Its number is lower than that of mail which arrived before."""
    async with opened(postgres_url) as store:
        arrivals = store.inbox.arrivals()
        await store.log.ends(key("a"))
        late = await psycopg.AsyncConnection.connect(postgres_url)
        statement = SQL("SELECT turnloom_offer({}, {}, '\\x01', 'm', {}::bytea, NULL)").format(
            Literal(TENANT), Literal("late"), Literal(b"{}")
        )
        await late.execute(statement)
        await store.inbox.offer(key("early"), "1", STOP)
        with anyio.fail_after(PATIENCE):
            assert await anext(arrivals) == key("early")
            await late.commit()
            assert await anext(arrivals) == key("late")
        await late.close()


async def test_a_message_costs_the_same_however_many_wait(postgres_url: str) -> None:
    """The log is asked about the id of the message, not about those that wait."""
    async with opened(f"{postgres_url}?options=-ctrack_functions%3Dall") as store:
        await store.log.append(key("a"), events("a", 1), 0)
        for n in range(20):
            await store.inbox.offer(key("a"), f"m{n}", Close("a#1"))
    await until_there(postgres_url, f"SELECT 1 WHERE {ASKED} = 20")


EXPIRE = "UPDATE turnloom_claims SET until = clock_timestamp()"


async def test_a_lease_that_is_over_stores_nothing(postgres_url: str) -> None:
    """Even if no other process took the run, and whatever the clock of this machine says."""
    async with opened(postgres_url, lease=60.0) as store:
        with pytest.raises(LeaseLost):
            async with store.claims.claim(key("a")) as fence:
                await store.log.append(key("a"), events("a", 1), 0, fence)
                await execute(postgres_url, EXPIRE)
                assert not await store.claims.held(key("a"))
                await store.log.append(key("a"), events("a", 1, 1), 1, fence)
        assert len(await store.log.read(key("a"))) == 1


async def test_clocks_that_are_an_hour_apart(postgres_url: str) -> None:
    """The time of the database counts, on whatever machine."""
    early, late = FakeClock(), FakeClock()
    late.time = early.time + timedelta(hours=1)
    stores = [PostgresStore(postgres_url, CODEC, clock=clock) for clock in (early, late)]
    try:
        for store in stores:
            await store.log.ends(key("a"))
        clocks = [store.clock for store in stores if store.clock is not None]
        assert abs(clocks[0].now() - clocks[1].now()) < timedelta(minutes=5)
        async with stores[0].claims.claim(key("a")):
            holder = await stores[1].claims.held(key("a"))
            assert holder is not None and holder.seconds is not None and holder.seconds > 0
    finally:
        for store in stores:
            await store.aclose()


async def test_claims_are_kept_however_many_appends_wait(postgres_url: str) -> None:
    """A crowd of runs uses all connections for longer than a lease lasts."""
    async with opened(postgres_url, timeout=30.0, lease=2.0) as store:
        async with store.claims.claim(key("a")) as fence, anyio.create_task_group() as tasks:
            await store.log.append(key("a"), events("a", 1), 0, fence)
            async with await psycopg.AsyncConnection.connect(postgres_url) as other:
                await other.execute("LOCK TABLE turnloom_ids IN ACCESS EXCLUSIVE MODE")
                for n in range(20):
                    tasks.start_soon(store.log.append, key(f"r{n}"), events(f"r{n}", 1), 0)
                await anyio.sleep(5)
                await other.rollback()
            await store.log.append(key("a"), events("a", 1, 1), 1, fence)
        assert len(await store.log.runs(TENANT, 50)) == 21


async def test_a_long_queue_is_no_fault_of_the_server(postgres_url: str) -> None:
    """They wait for each other longer than the server may take for one."""
    connections = Connections(postgres_url)
    async with anyio.create_task_group() as tasks:
        for _ in range(10 * MAX_CONNECTIONS):
            tasks.start_soon(connections.run, "SELECT pg_sleep(%s)", (0.2,), 1.0, 30.0)
    await connections.aclose()


SLOW = """
    CREATE FUNCTION take_time() RETURNS event_trigger LANGUAGE plpgsql AS
        'BEGIN PERFORM pg_sleep(0.02); END';
    CREATE EVENT TRIGGER slow ON ddl_command_end EXECUTE FUNCTION take_time();
"""


async def test_processes_that_open_an_empty_database_at_once(postgres_url: str) -> None:
    """One creates the tables, which takes its time; none of the others sees them half made."""
    await execute(postgres_url, SLOW)

    async def use(number: int) -> None:
        async with opened(postgres_url) as store:
            await anyio.sleep(number / 10)  # they come one after the other
            assert await store.log.ends(key("a")) is None

    async with anyio.create_task_group() as tasks:
        for number in range(12):
            tasks.start_soon(use, number)


# A claim of run b that is not committed, so that others wait for it.
OTHER_CLAIM = """
    INSERT INTO turnloom_claims SELECT (jsonb_populate_record(
        held, jsonb_build_object('run', 'b', 'fence', -1))).* FROM turnloom_claims AS held
"""
WAITS = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"


async def test_a_claim_that_is_written_as_its_store_closes_does_not_stay(postgres_url: str) -> None:
    async with opened(postgres_url) as watch, watch.claims.claim(key("a")):
        async with await psycopg.AsyncConnection.connect(postgres_url) as other:
            await other.execute(OTHER_CLAIM)
            async with opened(postgres_url) as store:
                taking = asyncio.ensure_future(store.claims.claim(key("b")).__aenter__())
                await until_there(postgres_url, WAITS)
                for _ in range(2):
                    taking.cancel()
                    await asyncio.sleep(0)
                closing = asyncio.ensure_future(store.aclose())
                await asyncio.sleep(0.2)  # enough to release too early
                await other.rollback()
                await closing
        assert await watch.claims.held(key("b")) is None


async def until_there(url: str, statement: str) -> None:
    """Wait until a statement finds something."""
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as watch:
        with anyio.fail_after(PATIENCE):
            while not await (await watch.execute(SQL(statement))).fetchone():  # noqa: ASYNC110
                await asyncio.sleep(0.01)
