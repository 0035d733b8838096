"""The option `--store`, and what it does to a test run."""

import os
import sys
from pathlib import Path

import psycopg
import pytest

from tests.support.on_postgres import closing, stands
from tests.support.on_postgres.exempt import EXEMPT
from tests.support.servers import PostgresServer, shared

ROOT = Path(__file__).parents[3]

# A password that is checked fast: tests connect all the time.
ROLE = """
    SET scram_iterations = 1;
    CREATE ROLE fast SUPERUSER LOGIN PASSWORD 'fast'"""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--store",
        choices=["own", "postgres"],
        default="own",
        help="the store of all tests: the one that each chooses, or PostgreSQL",
    )


def is_on(config: pytest.Config) -> bool:
    return config.getoption("--store") == "postgres"


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    is_controller = config.getoption("numprocesses", None) and not hasattr(config, "workerinput")
    if not is_on(config) or is_controller:
        return
    server: PostgresServer = shared(PostgresServer, config)
    with psycopg.connect(server.url(), autocommit=True) as connection:
        connection.execute(ROLE)
        connection.execute(stands.TABLE)
    os.environ[stands.PLACE] = f"postgresql://fast:fast@127.0.0.1:{server.port}/postgres"
    folders = [Path(__file__).parent, ROOT, *filter(None, [os.environ.get("PYTHONPATH")])]
    os.environ["PYTHONPATH"] = os.pathsep.join(map(str, folders))
    sys.path.insert(0, str(folders[0]))  # tests start programs with the path that they have
    # Tests need not close a store in memory.
    config.addinivalue_line("filterwarnings", "ignore:<psycopg.AsyncConnection:ResourceWarning")
    stands.install()
    config.pluginmanager.register(closing, "closing")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not is_on(config):
        return
    for item in items:
        name = item.nodeid.partition("[")[0]
        for known, reason in EXEMPT.items():
            if name == known or name.startswith((f"{known}::", f"{known}/")):
                item.add_marker(pytest.mark.skip(reason=reason))
