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


OLDER = """
    DROP INDEX turnloom_inbox_cleared; DROP TABLE turnloom_job_results; DROP TABLE turnloom_jobs;
    UPDATE turnloom_schema SET version = 3;
"""


def test_tables_of_another_release(store: str, turnloom: Call, chat: str) -> None:
    calls = {"TURNLOOM_STORE": store}
    turnloom("run", chat, "--quiet", **calls)
    using = (
        ("runs",),
        ("run", chat),
        ("store", "verify"),
        ("store", "prune", "--older-than", "1d"),
    )
    migrate = ("store", "migrate")
    with psycopg.connect(store, autocommit=True) as server:
        server.execute(OLDER)
        for call in using:
            assert "turnloom store migrate" in turnloom(*call, code=1, **calls).err
        steps = [{"version": 4, "name": "jobs"}, {"version": 5, "name": "mail"}]
        would = json.loads(turnloom(*migrate, "--dry-run", "--json", **calls).out)
        assert would == {"steps": steps, "dry_run": True}
        assert json.loads(turnloom(*migrate, "--json", **calls).out)["steps"] == steps
        assert len(json.loads(turnloom("runs", "--json", **calls).out)) == 1
        server.execute("UPDATE turnloom_schema SET version = 99")
        for call in (*using, migrate):
            assert "99" in turnloom(*call, code=1, **calls).err
