"""Runs in PostgreSQL behind a real PgBouncer in transaction mode."""

import logging
import os
import pwd
import shutil
import subprocess
from collections.abc import Generator
from contextlib import aclosing
from pathlib import Path

import anyio
import psycopg
import pytest

from tests.adapters.postgres.test_store_trouble import opened
from tests.support.servers import PASSWORD, PostgresServer, Server
from turnloom import Loom
from turnloom.adapters.postgres import PostgresStore
from turnloom.testing.contracts import CODEC
from turnloom.testing.contracts.facts import events, key, until

pytestmark = pytest.mark.doors

PATIENCE = 60.0
INSTALL = ("apt-get", "install", "--yes", "--no-install-recommends", "pgbouncer")
TALK = Path(__file__).parents[3] / "workflows" / "Interview"


def program() -> str:
    """The program, installed if this process may do so."""
    path = f"{os.environ.get('PATH', '')}:/usr/sbin"
    found = shutil.which("pgbouncer", path=path)
    if found is None and os.getuid() == 0 and shutil.which("apt-get"):
        subprocess.run(INSTALL, check=False, capture_output=True)
        found = shutil.which("pgbouncer", path=path)
    if found is None:
        refuse = pytest.fail if os.environ.get("CI") else pytest.skip
        refuse(f"PgBouncer is missing, and this user cannot install it: `{' '.join(INSTALL)}`.")
    return str(found)


class PgBouncer(Server):
    """PgBouncer in front of a server, with three sessions for all of its clients."""

    def __init__(self, server: PostgresServer) -> None:
        super().__init__()
        self._program = program()
        secret = PASSWORD.replace("'", "''")
        self.settings = self.folder / "pgbouncer.ini"
        self.settings.write_text(
            f"""
            [databases]
            * = host=127.0.0.1 port={server.port} user=postgres password='{secret}'
            [pgbouncer]
            listen_addr = 127.0.0.1
            listen_port = {self.port}
            auth_type = any
            pool_mode = transaction
            default_pool_size = 3
            unix_socket_dir =
            """.replace("    ", ""),
            "utf-8",
        )
        self.folder.chmod(0o755)

    def command(self) -> list[str]:
        return [self._program, str(self.settings)]

    def options(self) -> dict[str, object]:
        if os.getuid() != 0:
            return {}
        owner = pwd.getpwnam("nobody")
        return {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": []}

    def url(self, database: str) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"

    def answers(self) -> bool:
        try:
            psycopg.connect(self.url("postgres"), connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True


@pytest.fixture
def bouncer(postgres_server: PostgresServer) -> Generator[PgBouncer]:
    bouncer = PgBouncer(postgres_server)
    try:
        bouncer.start()
        yield bouncer
    finally:
        bouncer.discard()


async def test_a_store(
    postgres_url: str, bouncer: PgBouncer, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing depends on a session but listening, for which `listen_url` is named."""
    url = bouncer.url(postgres_url.rpartition("/")[2])
    with anyio.fail_after(PATIENCE), caplog.at_level(logging.WARNING, "turnloom.postgres"):
        async with opened(url) as store, opened(url) as other:
            async with store.claims.claim(key("a")) as fence, anyio.create_task_group() as tasks:
                for n in range(20):
                    tasks.start_soon(store.log.append, key(f"r{n}"), events(f"r{n}", 1), 0)
                await store.log.append(key("a"), events("a", 1), 0, fence)
                async with aclosing(other.log.subscribe(key("a"))) as followed:
                    assert (await anext(followed)).seq == 1
                    await store.log.append(key("a"), events("a", 1, 1), 1, fence)
                    assert (await anext(followed)).seq == 2
                    await until(lambda: "listen_url" in caplog.text)
        caplog.clear()
        direct = PostgresStore(url, CODEC, listen_url=postgres_url)
        async with opened(url) as store, aclosing(direct):
            async with aclosing(direct.log.subscribe(key("a"), 2)) as followed:
                await store.log.append(key("a"), events("a", 1, 2), 2)
                assert (await anext(followed)).seq == 3
                await until(lambda: direct._signals._hears.is_set())
    assert "listen_url" not in caplog.text


@pytest.mark.parametrize("scheduler", ["inline", "procrastinate"])
async def test_a_run(postgres_url: str, bouncer: PgBouncer, scheduler: str) -> None:
    """A workflow runs to its first question, and its log verifies."""
    url = bouncer.url(postgres_url.rpartition("/")[2])
    async with Loom(store=url, listen_url=postgres_url, scheduler=scheduler) as app:
        with anyio.fail_after(PATIENCE):
            run = await app.start(TALK)
            assert (await app.handle(run.id).summary()).run == run.id
            assert [each.run async for each in app.history.verify(run.id)] == [run.id]
