"""`turnloom index`: the indexes that database variables are looked up by, made once."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
from anyio import to_thread
from pymongo import AsyncMongoClient

from tests.cli.conftest import Call
from tests.support.documents import add, into_sqlite
from tests.support.folders import write_folder
from tests.support.servers import free_port
from turnloom import Loom
from turnloom.adapters.sqlite import lookups
from turnloom.testing import ScriptedEngine
from turnloom.variables.ports import Lookup

DESK = {
    "orchestrator.yaml": "database_name: crm",
    "agents.yaml": "Desk: {system_message: Serve., engine: scripted}",
    "context_variables.yaml": """
        definitions:
          name: {type: string, source:
            {type: database, collection: customers, search_by: user_id, field: name}}
          plan: {type: string, source:
            {type: database, collection: customers, search_by: user_id, field: contact.plan}}
          region: {type: string, source:
            {type: database, database_name: hq, collection: apps, search_by: app_id, field: region}}
          flag: {type: boolean, source: {type: environment, env_var: FLAG, default: false}}
        """,
    "script.yaml": "agents: {Desk: [Yes?]}",
}
LINES = """\
database crm, collection customers, field user_id: indexed
database hq, collection apps, field app_id: indexed
"""


@pytest.fixture
def desk(tmp_path: Path) -> str:
    write_folder(tmp_path, DESK, "Desk")
    return "Desk"


def fill(folder: Path) -> None:
    into_sqlite(folder, "crm", "customers", [{"user_id": "ann", "name": "Ann"}])
    into_sqlite(folder, "hq", "apps", [{"app_id": "acme", "region": "south"}])


def plan(file: Path, wanted: Lookup) -> str:
    """How SQLite goes about a lookup."""
    with closing(sqlite3.connect(file)) as connection:
        rows = connection.execute(f"EXPLAIN QUERY PLAN {lookups.newest(wanted)[0]}", ("", ""))
        return " ".join(row[3] for row in rows)


def test_lookups_are_indexed_once(turnloom: Call, desk: str, tmp_path: Path) -> None:
    documents = tmp_path / ".turnloom" / "documents"
    fill(documents)
    wanted = Lookup("crm", "customers", "user_id", "ann", "acme")
    assert "SCAN" in plan(documents / "crm.db", wanted)
    for _ in range(2):
        assert turnloom("index", desk).out == LINES
    assert "USING INDEX" in plan(documents / "crm.db", wanted)
    assert [path.name for path in (tmp_path / ".turnloom").iterdir()] == ["documents"]


def test_several_folders_share_an_index(turnloom: Call, desk: str, tmp_path: Path) -> None:
    fill(tmp_path / "data")
    default = {**DESK, "orchestrator.yaml": "{}"}
    write_folder(tmp_path, default, "Other")
    into_sqlite(tmp_path / "data", None, "customers", [{"user_id": "ann"}])
    done = turnloom("index", desk, "Other", "--documents", "sqlite:data")
    assert done.out == f"{LINES}default database, collection customers, field user_id: indexed\n"
    assert turnloom("index", desk, TURNLOOM_DOCUMENTS="sqlite:data").out == LINES


def test_a_collection_that_is_missing_is_not_made(
    turnloom: Call, desk: str, tmp_path: Path
) -> None:
    into_sqlite(tmp_path / "data", "hq", "apps", [])
    done = turnloom("index", desk, "--documents", "sqlite:data", code=1)
    assert done.out.splitlines() == [
        "database crm, collection customers, field user_id: no such collection",
        "database hq, collection apps, field app_id: indexed",
    ]
    assert done.err.startswith("Error: ")
    assert [path.name for path in (tmp_path / "data").iterdir()] == ["hq.db"]


def test_there_may_be_nothing_to_index(turnloom: Call, chat: str) -> None:
    done = turnloom("index", chat)
    assert done.out == "" and done.err


def test_wrong_use_and_wrong_workflows_are_refused(
    turnloom: Call, desk: str, tmp_path: Path
) -> None:
    assert "PATH" in turnloom("index", code=2).err
    assert "'x'" in turnloom("index", desk, "--documents", "x", code=2).err
    wrong = DESK | {"context_variables.yaml": "definitions: {x: {}}"}
    write_folder(tmp_path, wrong, "Wrong")
    done = turnloom("index", "Wrong", code=2)
    assert "Wrong/context_variables.yaml:1: W011" in done.err


@pytest.mark.parametrize("scheme", ["postgresql", "mongodb"])
def test_a_server_that_is_not_there_is_told_in_a_sentence(
    turnloom: Call, desk: str, scheme: str
) -> None:
    url = f"{scheme}://ann:s3cr3t@127.0.0.1:{free_port()}/x"
    done = turnloom("index", desk, "--documents", url, code=1, TURNLOOM_DOCUMENTS_TIMEOUT="0.5")
    assert done.out == "" and done.err.startswith("Error: ") and "s3cr3t" not in done.err


async def test_servers_are_indexed_once(
    turnloom: Call, desk: str, postgres_url: str, mongo_url: str
) -> None:
    for url in (postgres_url, mongo_url):
        await add(url, "crm", "customers", [{"user_id": "ann"}])
        await add(url, "hq", "apps", [{"app_id": "acme"}])
        for _ in range(2):
            done = await to_thread.run_sync(turnloom, "index", desk, "--documents", url)
            assert done.out == LINES
    async with await psycopg.AsyncConnection.connect(postgres_url) as connection:
        found = await connection.execute(
            "SELECT indexdef FROM pg_indexes "
            "WHERE schemaname = 'crm' AND indexname LIKE 'turnloom_%'"
        )
        ((definition,),) = await found.fetchall()
    assert "user_id" in definition and "id DESC" in definition
    async with AsyncMongoClient[dict[str, Any]](mongo_url) as client:
        indexes = await client["crm"]["customers"].index_information()
        assert "user_id" in json.dumps(indexes, default=str)
        for name in ("crm", "hq"):
            await client.drop_database(name)


async def test_an_app_indexes_workflows_that_it_gives_an_engine(desk: str, tmp_path: Path) -> None:
    folder = tmp_path / desk
    (folder / "script.yaml").unlink()
    (folder / "agents.yaml").write_text("Desk: {system_message: Serve.}", "utf-8")
    documents = f"sqlite:{tmp_path / 'data'}"
    await add(documents, "hq", "apps", [])
    async with Loom(store="memory", documents=documents, engine=ScriptedEngine({})) as app:
        made = [index async for index in app.index(str(folder))]
    assert made == [("crm", "customers", "user_id", False), ("hq", "apps", "app_id", True)]
