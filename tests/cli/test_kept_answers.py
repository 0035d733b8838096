"""Answers to runs that cannot go on where they are given: kept, and every command says so."""

import json
from pathlib import Path

import pytest

from tests.cli.asking import VERDICT, asking
from tests.cli.conftest import Call
from tests.support.folders import write_folder
from tests.support.tables import content_of, tables_of

KEY = "hunter2-hunter3"
VARIABLES = """
    definitions:
      key: {type: string, secret: true, source: {type: environment, env_var: MY_KEY}}
    agents: {Clerk: {variables: [key]}}
    """
ECHO = """
from turnloom import use_ui_tool


async def ask():
    return len(await use_ui_tool("ask", {"title": "The key, please."}))
"""


@pytest.fixture
def guarded(tmp_path: Path) -> str:
    files = asking(VERDICT) | {"context_variables.yaml": VARIABLES}
    return write_folder(tmp_path, files, "Asks")


def test_an_answer_is_kept_where_a_secret_is_missing(turnloom: Call, guarded: str) -> None:
    turnloom("run", guarded, MY_KEY=KEY)
    for _ in range(2):
        done = turnloom("answer", "last", "accepted", code=1)
        assert "'key'" in done.err and "The answer is kept." in done.err
        assert "No question is open." in turnloom("questions").err
        assert " waits: " not in turnloom("runs").out
    done = turnloom("resume", "last", code=1)
    assert "'key'" in done.err and "waits for an answer" not in done.out
    done = turnloom("resume", "last", MY_KEY=KEY)
    assert 'ask returned {"verdict":"accepted"}' in done.out and "Thank you." in done.out
    assert json.loads(turnloom("runs", "--json").out)[0]["status"] == "finished"


def test_what_is_typed_leaves_the_inbox_with_its_event(turnloom: Call, tmp_path: Path) -> None:
    """What is on record is masked, and nothing else is left in the file."""
    files = asking() | {"context_variables.yaml": VARIABLES, "asks.py": ECHO}
    store = tmp_path / ".turnloom" / "turnloom.db"
    turnloom("run", write_folder(tmp_path, files, "Asks"), MY_KEY=KEY)
    turnloom("answer", "last", KEY, MY_KEY=KEY)
    assert (kept := content_of(store.parent)) and KEY.encode() not in kept
    assert "Thank you." in turnloom("resume", "last", MY_KEY=KEY).out
    with tables_of(store) as tables:
        assert tables.counts()["inbox"] == 0
