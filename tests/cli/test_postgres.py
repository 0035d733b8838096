"""The same tour as on a SQLite file, with `TURNLOOM_STORE` alone."""

import json
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest

from tests.cli.conftest import Call
from tests.support.servers import PostgresServer, postgres_server

__all__ = ["postgres_server"]

pytestmark = pytest.mark.doors


@pytest.fixture
def store(postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> str:
    """A schema of its own, which every call finds in the environment."""
    with psycopg.connect(postgres_server.url(), autocommit=True) as connection:
        connection.execute("DROP SCHEMA IF EXISTS tour CASCADE")
        connection.execute("CREATE SCHEMA tour")
    url = f"{postgres_server.url()}?options={quote('-csearch_path=tour')}"
    monkeypatch.setenv("TURNLOOM_STORE", url)
    return url


def test_a_tour(store: str, turnloom: Call, chat: str, tmp_path: Path) -> None:
    calls = {"TURNLOOM_STORE": store}
    turnloom("run", chat, "--quiet", **calls)
    (run,) = json.loads(turnloom("runs", "--json", **calls).out)
    assert run["status"] == "finished"
    assert run["run"] in turnloom("explain", "last", **calls).out
    assert turnloom("replay", "last", **calls).out
    turnloom("fork", "last", "--at", "2", "--unattended", **calls)
    assert len(json.loads(turnloom("runs", "--json", **calls).out)) == 2
    assert json.loads(turnloom("store", "migrate", "--json", **calls).out)["steps"] == []
    turnloom("store", "verify", **calls)
    turnloom("store", "copy", store, "copy.db")
    assert len(json.loads(turnloom("runs", "--json", "--store", "copy.db").out)) == 2
    turnloom("store", "prune", "--before", "2100-01-01", **calls)
    assert json.loads(turnloom("runs", "--json", **calls).out) == []
    turnloom("store", "copy", "copy.db", store)
    assert len(json.loads(turnloom("runs", "--json", **calls).out)) == 2


def test_what_is_wrong_is_said_in_a_sentence(
    postgres_server: PostgresServer, turnloom: Call, chat: str
) -> None:
    url = postgres_server.url(password="hunter2")
    said = turnloom("run", chat, code=1, TURNLOOM_STORE=url).err
    assert said.startswith("Error: ") and "Traceback" not in said and "hunter2" not in said
