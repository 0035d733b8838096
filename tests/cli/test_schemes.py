"""Commands refuse what their settings cannot name, before anything is opened."""

from pathlib import Path

import pytest

from tests.cli.conftest import Call
from tests.support.folders import write_folder

URL = "mysql://ada:hunter2@host/db"


@pytest.mark.parametrize(
    "words",
    [
        ("runs", "--store", URL),
        ("run", "Flow", "--store", URL),
        ("ingest", "Flow", "--collection", "library", "--vectors", URL),
        ("run", "Flow", "--engine", "none"),
    ],
    ids=["runs", "run", "ingest", "engine"],
)
def test_a_command_refuses(words: tuple[str, ...], turnloom: Call, tmp_path: Path) -> None:
    write_folder(tmp_path, {"agents.yaml": "A: {system_message: Hi.}"})
    before = sorted(tmp_path.rglob("*"))
    done = turnloom(*words, code=2)
    assert "hunter2" not in done.out + done.err
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("setting", ["STORE", "DOCUMENTS", "VECTORS", "ARTIFACTS", "BELIEFS"])
def test_the_environment_is_refused_when_a_command_starts(setting: str, turnloom: Call) -> None:
    done = turnloom("runs", code=2, **{f"TURNLOOM_{setting}": URL})
    assert "'mysql'" in done.err and "hunter2" not in done.out + done.err


def test_a_server_of_tools_is_reached_by_http(turnloom: Call, tmp_path: Path) -> None:
    files = {
        "agents.yaml": "A: {system_message: Hi.}",
        "tools.yaml": "mcp_servers: [{name: far, url: 'ftp://ada:hunter2@host'}]",
    }
    write_folder(tmp_path, files)
    done = turnloom("check", "Flow", code=2)
    assert "W012" in done.out + done.err and "hunter2" not in done.out + done.err
    files["tools.yaml"] = "mcp_servers: [{name: far, url: 'HTTPS://host'}]"
    write_folder(tmp_path, files)
    turnloom("check", "Flow", "--model", "openai:gpt-5")
