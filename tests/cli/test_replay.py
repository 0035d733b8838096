"""Runs replayed at the command line."""

import json
from pathlib import Path

from tests.cli.conftest import Call

FLOW = """
from pydantic import BaseModel, ConfigDict

from turnloom import Flow


class Refund(BaseModel):
    model_config = ConfigDict(frozen=True)
    amount: int = 300
    by: str = ""


def check(state):
    return {"amount": state.amount}


def is_large(state):
    return state.amount > 100


def manager(state):
    return {"by": "manager"}


def clerk(state):
    return {"by": "clerk"}


flow = Flow("refunds", Refund).start_with(check)
flow.branch(is_large, {True: manager, False: clerk})
"""


def test_a_run_is_replayed_until_its_code_decides_otherwise(turnloom: Call, tmp_path: Path) -> None:
    file, store = tmp_path / "refunds.py", str(tmp_path / "runs.db")
    file.write_text(FLOW, "utf-8")
    turnloom("run", str(file), "--store", store, "--quiet")
    same = turnloom("replay", "last", "--store", store).out
    assert same.startswith("✓ ") and "refunds: 9 events" in same
    file.write_text(FLOW.replace("> 100", "> 500"), "utf-8")
    assert turnloom("replay", "last", "--store", store, code=1).out.startswith("✗ ")
    found = json.loads(turnloom("replay", "--all", "--json", "--store", store, code=1).out)
    assert (found["same"], found["events"], found["divergence"]["seq"]) == (5, 9, 6)
    assert found["changed_code"] == ["branch.on"]


def test_it_says_which_runs(turnloom: Call, tmp_path: Path) -> None:
    store = str(tmp_path / "runs.db")
    (tmp_path / "refunds.py").write_text(FLOW, "utf-8")
    turnloom("run", str(tmp_path / "refunds.py"), "--store", store, "--quiet")
    for words in ((), ("last", "--all"), ("last", "--since", "1h"), ("nonesuch",)):
        turnloom("replay", *words, "--store", store, code=2)
    chosen = ("--workflow", "refunds", "--since", "1h", "--store", store)
    assert turnloom("replay", "--all", *chosen).out.count("✓") == 1
