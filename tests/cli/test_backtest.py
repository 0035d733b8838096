"""Runs backtested at the command line."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Call
from tests.cli.test_replay import FLOW
from tests.support.folders import write_folder

TALK = {
    "orchestrator.yaml": "{workflow_name: Talk, initial_agent: A, max_turns: 4}",
    "agents.yaml": "A: {system_message: First.}\nB: {system_message: Second.}",
    "context_variables.yaml": """
        definitions:
          ready: {type: boolean, source: {type: derived, default: false, triggers: [
            {type: agent_text, agent: A, match: {contains: GO}}]}}
        agents: {B: {variables: [ready]}}
        """,
    "handoffs.yaml": """
        - {source_agent: A, target_agent: B, handoff_type: condition,
           condition: '${ready} == True'}
        - {source_agent: A, target_agent: A, handoff_type: after_work}
        - {source_agent: B, target_agent: terminate, handoff_type: after_work}
        """,
    "script.yaml": "agents: {A: [Wait., GO.], B: [Bye.]}",
}

BOARD = """
from pydantic import BaseModel

from turnloom import artifact_type


@artifact_type
class Letter(BaseModel):
    text: str


async def read(task):
    return "read"


def declare(app):
    board = app.board("mail")
    board.agent("reader").consumes(Letter, where=lambda it: True).with_engines(read)
    return board
"""


@pytest.fixture
def store(turnloom: Call, tmp_path: Path) -> str:
    """A store with a run of the talk."""
    store = str(tmp_path / "runs.db")
    turnloom("run", write_folder(tmp_path, TALK, "Talk"), "--store", store, "--quiet")
    return store


def edited(where: Path, file: str, before: str, after: str) -> str:
    assert before in TALK[file]
    return write_folder(where, {**TALK, file: TALK[file].replace(before, after)}, "Edited")


def test_an_edited_folder(turnloom: Call, tmp_path: Path, store: str) -> None:
    same = turnloom("backtest", "--with", str(tmp_path / "Talk"), "last", "--store", store)
    assert "✗" not in same.out and "0 of 1" in same.out
    folder = edited(tmp_path, "context_variables.yaml", "contains: GO", "contains: Wait")
    chosen = ("backtest", "--with", folder, "--store", store)
    found = json.loads(turnloom(*chosen, "--last", "5", "--json").out)
    (run,) = found["runs"]
    assert run["differences"] == {"value": {"certain": 1}, "route": {"certain": 1}}
    assert run["end"]["reason"] == "B would have spoken instead of A"
    assert (run["first"]["part"], run["first"]["edited"]) == ("value", "true")
    assert found["rates"]["route"]["share"] == 1
    shown = turnloom(*chosen, "--explain", "last").out
    assert "value ready (certain)" in shown and "in the record" in shown


def test_limits_for_pipelines(turnloom: Call, tmp_path: Path, store: str) -> None:
    folder = edited(tmp_path, "agents.yaml", "Second.", "The second.")
    chosen = ("backtest", "--with", folder, "--since", "1h", "--store", store)
    assert turnloom(*chosen, "--fail-on", "route>0%", "--fail-on", "undecided>0%").out
    assert "frame>50%" in turnloom(*chosen, "--fail-on", "frame>50%", code=1).err
    turnloom(*chosen, "--fail-on", "frame>100%")


@pytest.mark.parametrize(
    "words",
    [("last",), (), ("last", "--last", "2"), ("last", "--fail-on", "often"), ("nonesuch",)],
)
def test_what_is_refused(
    turnloom: Call, tmp_path: Path, store: str, words: tuple[str, ...]
) -> None:
    folder = () if words == ("last",) else ("--with", str(tmp_path / "Talk"))
    turnloom("backtest", *folder, *words, "--store", store, code=2)


def test_an_edited_flow_and_a_board(turnloom: Call, tmp_path: Path, store: str) -> None:
    flow, board = tmp_path / "refunds.py", tmp_path / "mail.py"
    flow.write_text(FLOW, "utf-8")
    board.write_text(BOARD, "utf-8")
    turnloom("run", str(flow), "--store", store, "--quiet")
    edit = tmp_path / "edited.py"
    edit.write_text(FLOW.replace("> 100", "> 500"), "utf-8")
    given = ("--with", str(edit), "--last", "3", "--store", store, "--json")
    (run,) = json.loads(turnloom("backtest", *given).out)["runs"]
    assert run["differences"] == {"route": {"certain": 1}} and "'clerk'" in run["end"]["reason"]
    letter = ("Letter", '{"text": "Hello"}')
    turnloom("board", "publish", f"{board}:declare", *letter, "--store", store)
    board.write_text(BOARD.replace("it: True", "it: False"), "utf-8")
    given = ("--with", f"{board}:declare", "--last", "3", "--store", store, "--json")
    (run,) = json.loads(turnloom("backtest", *given).out)["runs"]
    assert run["differences"]["route"] == {"certain": 1} and run["end"] is not None
    refused = turnloom("backtest", "--with", str(edit), run["run"], "--store", store, code=2)
    assert "cannot be backtested" in refused.err
